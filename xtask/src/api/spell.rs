//! Public items as lines of text: what a caller depends on, without bodies and comments.

use quote::ToTokens;
use syn::{Fields, ImplItem, Item, ItemImpl, TraitItem, Visibility};

/// The name of an item that can be exported.
pub fn name(item: &Item) -> Option<String> {
    Some(
        match item {
            Item::Const(item) => &item.ident,
            Item::Enum(item) => &item.ident,
            Item::Fn(item) => &item.sig.ident,
            Item::Static(item) => &item.ident,
            Item::Struct(item) => &item.ident,
            Item::Trait(item) => &item.ident,
            Item::Type(item) => &item.ident,
            _ => return None,
        }
        .to_string(),
    )
}

/// Whether the item is public in its module.
pub fn is_public(item: &Item) -> bool {
    let visibility = match item {
        Item::Const(item) => &item.vis,
        Item::Enum(item) => &item.vis,
        Item::Fn(item) => &item.vis,
        Item::Static(item) => &item.vis,
        Item::Struct(item) => &item.vis,
        Item::Trait(item) => &item.vis,
        Item::Type(item) => &item.vis,
        _ => return false,
    };
    matches!(visibility, Visibility::Public(_))
}

/// The lines of an item that other crates see at `path`.
pub fn item(item: &Item, path: &str) -> Vec<String> {
    match item {
        Item::Const(item) => vec![line(&format!("const {path}: {}", text(&item.ty)))],
        Item::Static(item) => vec![line(&format!("static {path}: {}", text(&item.ty)))],
        Item::Type(item) => vec![line(&format!("type {path}{} = {}", text(&item.generics), text(&item.ty)))],
        Item::Fn(item) => vec![line(&signature(&item.sig, path))],
        Item::Struct(item) => {
            let mut lines = vec![line(&format!("struct {path}{}{}", text(&item.generics), open(&item.attrs)))];
            lines.extend(fields(&item.fields, path, Some(())));
            lines
        }
        Item::Enum(item) => {
            let mut lines = vec![line(&format!("enum {path}{}{}", text(&item.generics), open(&item.attrs)))];
            for variant in &item.variants {
                let path = format!("{path}::{}", variant.ident);
                lines.push(line(&format!("variant {path}")));
                lines.extend(fields(&variant.fields, &path, None));
            }
            lines
        }
        Item::Trait(item) => {
            let bounds =
                if item.supertraits.is_empty() { String::new() } else { format!(": {}", text(&item.supertraits)) };
            let mut lines = vec![line(&format!("trait {path}{}{bounds}", text(&item.generics)))];
            for inner in &item.items {
                lines.extend(match inner {
                    TraitItem::Fn(inner) => {
                        let kind = if inner.default.is_some() { "provided " } else { "required " };
                        Some(line(&format!("{kind}{}", signature(&inner.sig, &format!("{path}::{}", inner.sig.ident)))))
                    }
                    TraitItem::Const(inner) => {
                        Some(line(&format!("const {path}::{}: {}", inner.ident, text(&inner.ty))))
                    }
                    TraitItem::Type(inner) => Some(line(&format!("type {path}::{}", inner.ident))),
                    _ => None,
                });
            }
            lines
        }
        _ => Vec::new(),
    }
}

/// The lines of an implementation for a type that other crates see at `path`.
pub fn methods(item: &ItemImpl, path: &str) -> Vec<String> {
    if let Some((_, implemented, _)) = &item.trait_ {
        return vec![line(&format!("impl {} for {path}", text(implemented)))];
    }
    let is_public = |visibility: &Visibility| matches!(visibility, Visibility::Public(_));
    let lines = item.items.iter().filter_map(|inner| match inner {
        ImplItem::Fn(inner) if is_public(&inner.vis) => {
            Some(line(&signature(&inner.sig, &format!("{path}::{}", inner.sig.ident))))
        }
        ImplItem::Const(inner) if is_public(&inner.vis) => {
            Some(line(&format!("const {path}::{}: {}", inner.ident, text(&inner.ty))))
        }
        _ => None,
    });
    lines.collect()
}

/// The public fields: all fields of a variant (`own` is `None`), or the `pub` fields of a struct.
fn fields(fields: &Fields, path: &str, own: Option<()>) -> Vec<String> {
    let seen =
        fields.iter().enumerate().filter(|(_, field)| own.is_none() || matches!(field.vis, Visibility::Public(_)));
    let named = seen.map(|(at, field)| {
        let name = field.ident.as_ref().map_or_else(|| at.to_string(), ToString::to_string);
        line(&format!("field {path}::{name}: {}", text(&field.ty)))
    });
    named.collect()
}

fn signature(signature: &syn::Signature, path: &str) -> String {
    let generics = &signature.generics;
    let inputs = text(&signature.inputs);
    let output = text(&signature.output);
    let bounds = generics.where_clause.as_ref().map(|bounds| format!(" {}", text(bounds))).unwrap_or_default();
    let constant = if signature.constness.is_some() { "const " } else { "" };
    format!("{constant}fn {path}{}({}) {output}{bounds}", text(generics), inputs.trim_end_matches(','))
}

/// A suffix for types that may get more variants or fields.
fn open(attributes: &[syn::Attribute]) -> &'static str {
    if attributes.iter().any(|attribute| attribute.path().is_ident("non_exhaustive")) {
        " (non-exhaustive)"
    } else {
        ""
    }
}

fn line(text: &str) -> String {
    format!("{}\n", text.trim_end())
}

/// Tokens with the usual spacing.
fn text(tokens: &impl ToTokens) -> String {
    let mut text = tokens.to_token_stream().to_string();
    for (spaced, tight) in [
        (" :: ", "::"),
        (":: ", "::"),
        (" ::", "::"),
        (" < ", "<"),
        ("< ", "<"),
        (" >", ">"),
        (" ,", ","),
        (" ;", ";"),
        ("& ", "&"),
        (" : ", ": "),
        ("( ", "("),
        (" )", ")"),
        (" (", "("),
        ("[ ", "["),
        (" ]", "]"),
        ("' ", "'"),
        ("< '", "<'"),
    ] {
        text = text.replace(spaced, tight);
    }
    text.replace("->(", "-> (").replace("->", " -> ").replace("  ", " ").trim().to_owned()
}
