//! Whatever happens to sources, every committed version reads back unchanged.

use std::collections::BTreeMap;

use stenograph_store::archive::{CopyChange, CopyId, WhichVersion};

use crate::place::{Place, add, assert_whole, label, lines, read};

/// The content of every version of every copy.
type Expected = BTreeMap<(CopyId, u32), Vec<u8>>;

fn change(random: &mut fastrand::Rng, bytes: &mut Vec<u8>) {
    let noise = |random: &mut fastrand::Rng, most: usize| {
        let size = random.usize(1..most);
        if random.bool() { lines(random.u64(..), size / 200 + 1) } else { random.alphanumeric_bytes(size) }
    };
    match random.u8(..12) {
        0..6 => bytes.extend(noise(random, 5_000)),
        6 => bytes.extend(noise(random, 2_000_000)),
        7 => bytes.truncate(random.usize(..=bytes.len())),
        8 if !bytes.is_empty() => {
            let at = random.usize(..bytes.len());
            bytes[at] = bytes[at].wrapping_add(1);
        }
        9 => {
            let at = random.usize(..=bytes.len());
            bytes.splice(at..at, noise(random, 3_000));
        }
        10 => *bytes = noise(random, 100_000),
        _ => {}
    }
}

trait Noise {
    fn alphanumeric_bytes(&mut self, size: usize) -> Vec<u8>;
}

impl Noise for fastrand::Rng {
    fn alphanumeric_bytes(&mut self, size: usize) -> Vec<u8> {
        std::iter::repeat_with(|| self.alphanumeric() as u8).take(size).collect()
    }
}

fn check(place: &Place, expected: &Expected) {
    let archive = place.archive();
    let found: Vec<(CopyId, u32)> = archive
        .copies()
        .flat_map(|copy| copy.versions.into_iter().map(move |version| (copy.id, version.number)))
        .collect();
    assert_eq!(found, expected.keys().copied().collect::<Vec<_>>());
    for ((copy, version), bytes) in expected {
        assert!(read(&archive, *copy, WhichVersion::Number(*version), 0) == *bytes, "copy {copy} version {version}");
    }
    assert_whole(&archive);
}

#[test]
fn every_version_reads_back_unchanged() {
    let seed = std::env::var("STENO_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_115);
    for round in 0..6 {
        eprintln!("seed {seed} round {round}");
        let mut random = fastrand::Rng::with_seed(seed + round);
        let mut place = Place::new();
        let mut keeper = place.keeper();
        let mut sources: Vec<Vec<u8>> = vec![Vec::new(); 3];
        let mut expected = Expected::new();
        for step in 0..60 {
            let which = random.usize(..sources.len());
            change(&mut random, &mut sources[which]);
            if random.u8(..20) == 0 {
                // A copy of another one.
                sources[which] = sources[random.usize(..sources.len())].clone();
            }
            let name = format!("{which}.jsonl");
            let path = place.write(&name, &sources[which]);
            if let Some(kept) = add(&mut keeper, &path, &label(&name)) {
                assert_eq!(kept.length, sources[which].len() as u64);
                let before = expected.insert((kept.copy, kept.version), sources[which].clone());
                match kept.change {
                    CopyChange::Same => assert_eq!(before.as_ref(), Some(&sources[which])),
                    CopyChange::Grown => assert!(sources[which].starts_with(&before.unwrap())),
                    CopyChange::Renewed => panic!("nothing was lost"),
                    CopyChange::New | CopyChange::Rewritten => assert_eq!(before, None),
                }
            }
            match random.u8(..10) {
                0 => {
                    keeper.commit(step).unwrap();
                    drop(keeper);
                    keeper = place.keeper();
                    assert!(keeper.warnings().is_empty(), "{:?}", keeper.warnings());
                }
                1..5 => keeper.commit(step).unwrap(),
                5 => _ = keeper.reclaim(step).unwrap(),
                6 if random.u8(..8) == 0 => {
                    if let Some(((copy, _), _)) = expected.iter().next().map(|(key, value)| (*key, value.len())) {
                        keeper.forget(&[copy], "chance").unwrap();
                        keeper.commit(step).unwrap();
                        expected.retain(|(other, _), _| *other != copy);
                    }
                }
                _ => {}
            }
        }
        keeper.commit(1_000).unwrap();
        check(&place, &expected);
        keeper.reclaim(1_001).unwrap();
        check(&place, &expected);
        drop(keeper);
        assert!(place.keeper().warnings().is_empty());
    }
}
