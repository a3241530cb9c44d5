//! `steno branches`: which conversation grew out of which, and where within a source somebody went back. Who is related to whom is the
//! library's part; here it is found out what to look at, and told as a tree.

mod family;
mod view;

use std::path::PathBuf;

use stenograph::compare::{ConversationBuilder, ConversationSteps, IsInSpine, Relation, relate};

use crate::conversation::Conversation;
use crate::error::{CommandError, Status};
use crate::input::Go;
use crate::output::{Output, counted, harmless_json};
use crate::store::Where;

/// Show which conversations branched off from which, where and why
///
/// Conversations that begin with the same words belong together: one goes on, and the others left it after some event. Calls are compared by
/// their ids, so that answers which were cut to size are still the same. Where the beginning was not copied, the ids of records tell, or what
/// a file says about where it was forked from. Within a file, turns that were taken back and answers that were tried again are branches too.
/// A session brings all sessions that are related to it; files and folders are looked at among themselves.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno branches                                   every family that steno index knows
  steno branches 0198f2c4                          the family of a session, by the beginning of its id
  steno branches ~/chats                           among the files of a folder
  steno branches one.jsonl two.jsonl --json

Exit codes: 0 done, 1 there are no branches, 2 error")]
pub struct Options {
    /// Files, folders or sessions; without any, everything that steno index knows
    #[arg(value_name = "FILE|SESSION")]
    names: Vec<PathBuf>,
    #[command(flatten)]
    place: Where,
    /// Show conversations that are related to nothing, too
    #[arg(long)]
    all: bool,
    /// Print them as JSON, one a line
    #[arg(long)]
    json: bool,
}

/// One conversation of a tree.
pub struct Member {
    /// What it is called here.
    pub name: String,
    /// The conversation.
    pub strand: ConversationSteps,
    /// What it grew out of.
    pub relation: Option<Relation>,
}

/// Runs it.
pub fn run(options: &Options, output: &mut Output<'_>) -> Result<Status, CommandError> {
    let (mut members, mut status) = (Vec::new(), Status::Done);
    for found in family::of(options, output)? {
        // One bad file does not stop the rest.
        match found.and_then(read) {
            Ok(member) => members.push(member),
            Err(error) => {
                output.error(&error);
                status = Status::Error;
            }
        }
    }
    // Without anything else to go by, the one that began first goes on; names of files often begin with a time.
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
        let looked = counted(members.len() as u64, "conversation");
        output.say(&format!("no branches in {looked}"));
        output.say("hint: --all shows them all; steno list shows the sessions there are");
        return Ok(status.max(Status::No));
    }
    if alone > 0 {
        output.say(&format!("{} without branches not shown: --all shows them", counted(alone, "conversation")));
    }
    Ok(status)
}

/// Reads one conversation. What could be read of a damaged one counts.
fn read(mut conversation: Conversation) -> Result<Member, CommandError> {
    let mut overview = conversation.overview();
    let mut weaving = ConversationBuilder::new(&overview.spine);
    let spine = &mut overview.spine;
    let read = conversation.again(&mut |event| {
        let is_in_spine = if spine.left_out(event).is_none() { IsInSpine::Yes } else { IsInSpine::No };
        weaving.add(event, spine, is_in_spine);
        Go::On
    });
    match (read, weaving.finish()) {
        (Err(error), strand) if strand.events == 0 => Err(error),
        (_, strand) => Ok(Member { name: conversation.name, strand, relation: None }),
    }
}
