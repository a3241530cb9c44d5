//! The modules of a crate, and which of their items another crate can name. It follows `pub mod` and `pub use` within the crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::{Attribute, Item, ItemImpl, ItemMod, Type, UseTree, Visibility};

use super::spell;
use crate::Failure;

/// A path within the crate, without the name of the crate.
type ModulePath = Vec<String>;

/// One module.
#[derive(Default)]
struct Module {
    items: Vec<Item>,
    /// Child modules, and whether each is public.
    children: BTreeMap<String, bool>,
    /// Names that `use` brings in, each with the path that it means and whether it is exported.
    uses: Vec<(String, ModulePath, bool)>,
}

/// The modules of a crate.
pub struct Modules {
    name: String,
    modules: BTreeMap<ModulePath, Module>,
}

impl Modules {
    /// Reads the crate whose first file this is.
    pub fn read(name: &str, file: &Path) -> Result<Modules, Failure> {
        let mut modules = Modules { name: name.to_owned(), modules: BTreeMap::new() };
        let folder = file.parent().unwrap_or(file).to_owned();
        modules.add(ModulePath::new(), parse(file)?, &folder)?;
        Ok(modules)
    }

    fn add(&mut self, module_path: ModulePath, items: Vec<Item>, folder: &Path) -> Result<(), Failure> {
        let mut module = Module::default();
        for item in items {
            match item {
                Item::Mod(child) if is_test(&child.attrs) => {}
                Item::Mod(child) => {
                    let name = child.ident.to_string();
                    module.children.insert(name.clone(), is_public(&child.vis));
                    let module_path: ModulePath = module_path.iter().cloned().chain([name.clone()]).collect();
                    let items = content(child, folder)?;
                    self.add(module_path, items, &folder.join(name))?;
                }
                Item::Use(item) => imports(&item.tree, &mut ModulePath::new(), is_public(&item.vis), &mut module.uses),
                item => module.items.push(item),
            }
        }
        self.modules.insert(module_path, module);
        Ok(())
    }

    /// The lines of all items that another crate can name.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut public: BTreeMap<(ModulePath, String), ModulePath> = BTreeMap::new();
        self.visit(&ModulePath::new(), &ModulePath::new(), &mut BTreeSet::new(), &mut |seen, module, item| {
            let Some(name) = spell::name(item) else { return };
            let path: ModulePath = seen.iter().cloned().chain([name.clone()]).collect();
            // If several paths lead to an item, list the shortest.
            let known = public.entry((module.clone(), name)).or_insert_with(|| path.clone());
            if path.len() < known.len() {
                *known = path;
            }
        });
        for ((module, name), path) in &public {
            let items = self.modules.get(module).map(|module| module.items.as_slice()).unwrap_or_default();
            for item in items.iter().filter(|item| spell::name(item).as_ref() == Some(name)) {
                lines.extend(spell::item(item, &self.spelled(path)));
            }
        }
        for (module_path, module) in &self.modules {
            for item in &module.items {
                if let Item::Impl(item) = item
                    && let Some(path) = self.target(module_path, item).and_then(|target| public.get(&target))
                {
                    lines.extend(spell::methods(item, &self.spelled(path)));
                }
            }
        }
        lines
    }

    fn spelled(&self, path: &ModulePath) -> String {
        format!("{}::{}", self.name, path.join("::"))
    }

    /// Calls `each` with every public item of a module and of the modules that it exports. `seen` is the path that other crates
    /// use.
    fn visit<'m>(
        &'m self,
        module_path: &ModulePath,
        seen: &ModulePath,
        visited: &mut BTreeSet<(ModulePath, ModulePath)>,
        each: &mut dyn FnMut(&ModulePath, &ModulePath, &'m Item),
    ) {
        if !visited.insert((module_path.clone(), seen.clone())) {
            return;
        }
        let Some(module) = self.modules.get(module_path) else { return };
        for item in module.items.iter().filter(|item| spell::is_public(item)) {
            each(seen, module_path, item);
        }
        for (child, _) in module.children.iter().filter(|(_, is_public)| **is_public) {
            self.visit(&joined(module_path, child), &joined(seen, child), visited, each);
        }
        for (name, target, _) in module.uses.iter().filter(|(_, _, is_exported)| *is_exported) {
            let Some((from, item)) = self.resolve(module_path, target) else { continue };
            if self.modules.contains_key(&joined(&from, &item)) {
                self.visit(&joined(&from, &item), &joined(seen, name), visited, each);
            }
            for found in self.modules.get(&from).map(|module| module.items.as_slice()).unwrap_or_default() {
                if spell::name(found).as_ref() == Some(&item) {
                    each(seen, &from, found);
                }
            }
        }
    }

    /// Resolves a path, as written in the module `from`, to a module and a name; `None` if the path leads out of this crate.
    fn resolve(&self, from: &ModulePath, path: &[String]) -> Option<(ModulePath, String)> {
        let (first, rest) = path.split_first()?;
        let (mut module_path, rest) = match first.as_str() {
            "crate" => (ModulePath::new(), rest),
            "self" => (from.clone(), rest),
            "super" => (from.split_last()?.1.to_vec(), rest),
            _ => (from.clone(), path),
        };
        let (name, folders) = rest.split_last()?;
        for folder in folders {
            module_path = match folder.as_str() {
                "super" => module_path.split_last()?.1.to_vec(),
                child => joined(&module_path, child),
            };
        }
        let module = self.modules.get(&module_path)?;
        if module.items.iter().any(|item| spell::name(item).as_ref() == Some(name))
            || module.children.contains_key(name)
        {
            return Some((module_path, name.clone()));
        }
        let (_, target, _) = module.uses.iter().find(|(own, target, _)| own == name && target.as_slice() != path)?;
        self.resolve(&module_path, target)
    }

    /// The type that an implementation is for.
    fn target(&self, module_path: &ModulePath, item: &ItemImpl) -> Option<(ModulePath, String)> {
        let Type::Path(path) = &*item.self_ty else { return None };
        let path: ModulePath = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.resolve(module_path, &path)
    }
}

fn joined(module_path: &ModulePath, name: &str) -> ModulePath {
    module_path.iter().cloned().chain([name.to_owned()]).collect()
}

fn parse(file: &Path) -> Result<Vec<Item>, Failure> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(syn::parse_file(&text).map_err(|error| format!("{}: {error}", file.display()))?.items)
}

/// The items of a module, from its braces or from its own file.
fn content(module: ItemMod, folder: &Path) -> Result<Vec<Item>, Failure> {
    if let Some((_, items)) = module.content {
        return Ok(items);
    }
    let ident = module.ident.to_string();
    let name = ident.trim_start_matches("r#");
    let files: [PathBuf; 2] = [folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs")];
    let file =
        files.iter().find(|file| file.is_file()).ok_or_else(|| format!("{}: no such file", files[0].display()))?;
    parse(file)
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

/// The names that a `use` brings in.
fn imports(tree: &UseTree, path: &mut ModulePath, is_exported: bool, found: &mut Vec<(String, ModulePath, bool)>) {
    match tree {
        UseTree::Path(inner) => {
            path.push(inner.ident.to_string());
            imports(&inner.tree, path, is_exported, found);
            path.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| imports(tree, path, is_exported, found)),
        UseTree::Name(name) if name.ident == "self" => {
            found.extend(path.last().map(|name| (name.clone(), path.clone(), is_exported)));
        }
        UseTree::Name(name) => found.push((name.ident.to_string(), joined(path, &name.ident.to_string()), is_exported)),
        UseTree::Rename(rename) => {
            found.push((rename.rename.to_string(), joined(path, &rename.ident.to_string()), is_exported));
        }
        // The library crates have no glob exports.
        UseTree::Glob(_) => {}
    }
}
