//! The modules of a crate, and which of their items another crate can name. It follows `pub mod` and `pub use` within the crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::{Attribute, Item, ItemImpl, ItemMod, Type, UseTree, Visibility};

use super::spell;
use crate::Failure;

/// A path within the crate, without the name of the crate.
type Way = Vec<String>;

/// One module.
#[derive(Default)]
struct Module {
    items: Vec<Item>,
    /// Child modules, and whether each is public.
    children: BTreeMap<String, bool>,
    /// Names that `use` brings in, each with the path that it means and whether it is exported.
    uses: Vec<(String, Way, bool)>,
}

/// The modules of a crate.
pub struct Modules {
    name: String,
    modules: BTreeMap<Way, Module>,
}

impl Modules {
    /// Reads the crate whose first file this is.
    pub fn read(name: &str, file: &Path) -> Result<Modules, Failure> {
        let mut modules = Modules { name: name.to_owned(), modules: BTreeMap::new() };
        let folder = file.parent().unwrap_or(file).to_owned();
        modules.add(Way::new(), parse(file)?, &folder)?;
        Ok(modules)
    }

    fn add(&mut self, way: Way, items: Vec<Item>, folder: &Path) -> Result<(), Failure> {
        let mut module = Module::default();
        for item in items {
            match item {
                Item::Mod(child) if is_test(&child.attrs) => {}
                Item::Mod(child) => {
                    let name = child.ident.to_string();
                    module.children.insert(name.clone(), is_public(&child.vis));
                    let way: Way = way.iter().cloned().chain([name.clone()]).collect();
                    let items = content(child, folder)?;
                    self.add(way, items, &folder.join(name))?;
                }
                Item::Use(item) => imports(&item.tree, &mut Way::new(), is_public(&item.vis), &mut module.uses),
                item => module.items.push(item),
            }
        }
        self.modules.insert(way, module);
        Ok(())
    }

    /// What another crate can name.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut public: BTreeMap<(Way, String), Way> = BTreeMap::new();
        self.visit(&Way::new(), &Way::new(), &mut BTreeSet::new(), &mut |seen, module, item| {
            let Some(name) = spell::name(item) else { return };
            let path: Way = seen.iter().cloned().chain([name.clone()]).collect();
            // Of several paths to an item the shortest is the one that people use.
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
        for (way, module) in &self.modules {
            for item in &module.items {
                if let Item::Impl(item) = item
                    && let Some(path) = self.target(way, item).and_then(|target| public.get(&target))
                {
                    lines.extend(spell::methods(item, &self.spelled(path)));
                }
            }
        }
        lines
    }

    fn spelled(&self, path: &Way) -> String {
        format!("{}::{}", self.name, path.join("::"))
    }

    /// Gives every public item of a module, and of those that it exports, with the path by which it is seen.
    fn visit<'m>(
        &'m self,
        way: &Way,
        seen: &Way,
        visited: &mut BTreeSet<(Way, Way)>,
        each: &mut dyn FnMut(&Way, &Way, &'m Item),
    ) {
        if !visited.insert((way.clone(), seen.clone())) {
            return;
        }
        let Some(module) = self.modules.get(way) else { return };
        for item in module.items.iter().filter(|item| spell::is_public(item)) {
            each(seen, way, item);
        }
        for (child, _) in module.children.iter().filter(|(_, is_public)| **is_public) {
            self.visit(&joined(way, child), &joined(seen, child), visited, each);
        }
        for (name, target, _) in module.uses.iter().filter(|(_, _, is_exported)| *is_exported) {
            let Some((from, item)) = self.resolve(way, target) else { continue };
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

    /// The module and the name that a path means, seen from a module; `None` for what is not in this crate.
    fn resolve(&self, from: &Way, path: &[String]) -> Option<(Way, String)> {
        let (first, rest) = path.split_first()?;
        let (mut way, rest) = match first.as_str() {
            "crate" => (Way::new(), rest),
            "self" => (from.clone(), rest),
            "super" => (from.split_last()?.1.to_vec(), rest),
            _ => (from.clone(), path),
        };
        let (name, folders) = rest.split_last()?;
        for folder in folders {
            way = match folder.as_str() {
                "super" => way.split_last()?.1.to_vec(),
                child => joined(&way, child),
            };
        }
        let module = self.modules.get(&way)?;
        if module.items.iter().any(|item| spell::name(item).as_ref() == Some(name))
            || module.children.contains_key(name)
        {
            return Some((way, name.clone()));
        }
        let (_, target, _) = module.uses.iter().find(|(own, target, _)| own == name && target.as_slice() != path)?;
        self.resolve(&way, target)
    }

    /// The type that an implementation is for.
    fn target(&self, way: &Way, item: &ItemImpl) -> Option<(Way, String)> {
        let Type::Path(path) = &*item.self_ty else { return None };
        let path: Way = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.resolve(way, &path)
    }
}

fn joined(way: &Way, name: &str) -> Way {
    way.iter().cloned().chain([name.to_owned()]).collect()
}

fn parse(file: &Path) -> Result<Vec<Item>, Failure> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(syn::parse_file(&text).map_err(|error| format!("{}: {error}", file.display()))?.items)
}

/// The items of a module, which stand in a file of their own or in its place.
fn content(module: ItemMod, folder: &Path) -> Result<Vec<Item>, Failure> {
    if let Some((_, items)) = module.content {
        return Ok(items);
    }
    let name = module.ident.to_string();
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
fn imports(tree: &UseTree, path: &mut Way, is_exported: bool, found: &mut Vec<(String, Way, bool)>) {
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
        // The library exports nothing by a star.
        UseTree::Glob(_) => {}
    }
}
