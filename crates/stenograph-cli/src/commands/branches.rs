//! `steno branches`: shows which conversation branched off from which, and where within a source somebody went back. The
//! library relates conversations; this file selects them and prints the tree.

mod family;
mod view;

use std::path::PathBuf;

use stenograph::compare::{ConversationBuilder, ConversationSteps, IsInSpine, Relation, relate};

use crate::conversation::Conversation;
use crate::error::{CommandError, ExitStatus};
use crate::input::Flow;
use crate::output::{Output, counted, harmless_json};
use crate::store::SessionArgs;

/// Show which conversations branched from which, and where
///
/// Conversations with the same beginning form a family: one of them continues, and the others branch off after some event.
/// Calls are compared by id, so shortened results still match. If a file does not repeat the beginning, record ids or a stated
/// origin show where it branched off. Within a file, abandoned turns and retried answers are branches too. For a session, steno
/// shows all related sessions; it compares files and folders only with each other.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno branches                                   all families in the index
  steno branches 0198f2c4                          the family of a session
  steno branches ~/chats                           the files in a folder
  steno branches one.jsonl two.jsonl --json

Exit codes: 0 success, 1 no branches, 2 error")]
pub struct Options {
    /// Files, folders or sessions [default: all indexed sessions]
    #[arg(value_name = "FILE|SESSION", add = crate::completion::transcript())]
    names: Vec<PathBuf>,
    #[command(flatten)]
    place: SessionArgs,
    /// Also show conversations without branches or relatives
    #[arg(long)]
    all: bool,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

pub struct Member {
    pub name: String,
    pub strand: ConversationSteps,
    /// The relation to its parent.
    pub relation: Option<Relation>,
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let (mut members, mut status) = (Vec::new(), ExitStatus::Done);
    for found in family::conversations(options, output)? {
        // One bad file does not stop the rest.
        match found.and_then(read) {
            Ok(member) => members.push(member),
            Err(error) => {
                output.error(&error);
                status = ExitStatus::Error;
            }
        }
    }
    // By default the earliest conversation is the parent; file names often begin with a time.
    members.sort_by(|one, other| {
        let began = |member: &Member| member.strand.started().unwrap_or(i64::MAX);
        began(one).cmp(&began(other)).then_with(|| one.name.cmp(&other.name))
    });
    let relations = {
        let strands: Vec<ConversationSteps> =
            members.iter_mut().map(|member| std::mem::take(&mut member.strand)).collect();
        let relations = relate(&strands);
        members.iter_mut().zip(strands).for_each(|(member, strand)| member.strand = strand);
        relations
    };
    members.iter_mut().zip(relations).for_each(|(member, relation)| member.relation = relation);
    let tree = view::Tree::of(&members);
    let (mut shown, mut alone) = (0_u64, 0_u64);
    for root in tree.roots() {
        if tree.is_alone(root) && !options.all {
            alone += 1;
            continue;
        }
        if shown > 0 && !options.json {
            output.line("")?;
        }
        shown += 1;
        let lines = if options.json { tree.json(root) } else { tree.lines(root, output.colour()) };
        for line in lines {
            output.line(&if options.json { harmless_json(&line).into_owned() } else { line })?;
        }
    }
    if shown == 0 {
        let searched = counted(members.len() as u64, "conversation");
        output.say(&format!("no branches in {searched}"));
        output.say("hint: show all conversations with --all; list sessions with steno list");
        return Ok(status.max(ExitStatus::No));
    }
    if alone > 0 {
        output.say(&format!("{} without branches hidden: show with --all", counted(alone, "conversation")));
    }
    Ok(status)
}

/// Reads one conversation. A damaged one counts as far as it is readable.
fn read(mut conversation: Conversation) -> Result<Member, CommandError> {
    let mut overview = conversation.overview();
    let mut builder = ConversationBuilder::new(&overview.spine);
    let spine = &mut overview.spine;
    let read = conversation.read_quietly(&mut |event| {
        let is_in_spine = if spine.left_out(event).is_none() { IsInSpine::Yes } else { IsInSpine::No };
        builder.add(event, spine, is_in_spine);
        Flow::Continue
    });
    match (read, builder.finish()) {
        (Err(error), strand) if strand.events == 0 => Err(error),
        (_, strand) => Ok(Member { name: conversation.name, strand, relation: None }),
    }
}
