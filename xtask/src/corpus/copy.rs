//! Replaces the ids, times and rare words of a copy. Replacements depend only on the seed and the number of the copy, so an id
//! that two files share is shared in every copy. It must not change the length of a text.

use super::slots::{Kind, Slot, Vocabulary};

/// One repetition of all files.
pub struct Copy {
    seed: u64,
    pub number: u64,
    days: i64,
    /// The new spelling of each word, by the word's number; `None` if the word does not change.
    spellings: Vec<Option<Box<[u8]>>>,
}

/// The exponent of Heaps' law: the vocabulary of a text grows as this power of its length. Each copy renames as many rare words
/// as the growth by one copy would add.
const GROWTH: f64 = 0.65;

/// The times of a copy are at most this many days before those of the real files.
const DAYS_MAX: u64 = 700;

impl Copy {
    /// Copy 0 is identical to the real files.
    pub fn new(seed: u64, number: u64, vocabulary: &Vocabulary) -> Copy {
        let key = mix(seed, number);
        let mut spellings = vec![None; vocabulary.len()];
        let share = if number == 0 { 0.0 } else { GROWTH * (number as f64).powf(GROWTH - 1.0) };
        for (word_number, word) in vocabulary.rare() {
            let chance = mix(key, hash(word.as_bytes()));
            if (chance >> 11) as f64 / ((1_u64 << 53) as f64) < share
                && let Some(spelling) = spellings.get_mut(word_number as usize)
            {
                *spelling = Some(renamed(word, chance));
            }
        }
        let days = if number == 0 { 0 } else { i64::try_from(key % DAYS_MAX).unwrap_or(0) + 1 };
        Copy { seed, number, days, spellings }
    }

    /// Writes a file with the replacements of this copy. The salt distinguishes files that would otherwise have the same path.
    pub fn write(&self, salt: u64, bytes: &[u8], slots: &[Slot], out: &mut Vec<u8>) {
        let key = match (self.number, salt) {
            (0, 0) => None,
            _ => Some(mix(mix(self.seed, self.number), salt ^ 0x5a17)),
        };
        let mut done = 0;
        for Slot { at, kind } in slots {
            out.extend_from_slice(bytes.get(done..at.start).unwrap_or_default());
            self.spell(*kind, bytes.get(at.clone()).unwrap_or_default(), key, out);
            done = at.end;
        }
        out.extend_from_slice(bytes.get(done..).unwrap_or_default());
    }

    fn spell(&self, kind: Kind, text: &[u8], key: Option<u64>, out: &mut Vec<u8>) {
        match (kind, key) {
            (Kind::Hex, Some(key)) => hex(text, key, out),
            (Kind::Mixed | Kind::Blob, Some(key)) => rotated(text, key, out),
            (Kind::Hex | Kind::Mixed | Kind::Blob, None) => out.extend_from_slice(text),
            (Kind::Day, _) => day(text, self.days, out),
            (Kind::Seconds, _) => earlier(text, self.days * 86_400, out),
            (Kind::Millis, _) => earlier(text, self.days * 86_400_000, out),
            (Kind::Word(number), _) => match self.spellings.get(number as usize) {
                Some(Some(spelling)) => out.extend(
                    text.iter()
                        .zip(spelling)
                        .map(|(old, new)| if old.is_ascii_uppercase() { new.to_ascii_uppercase() } else { *new }),
                ),
                _ => out.extend_from_slice(text),
            },
        }
    }
}

/// Replaces each digit depending on its position, so a prefix of a hash remains a prefix of that hash.
fn hex(text: &[u8], key: u64, out: &mut Vec<u8>) {
    let mut stream = key;
    for (place, byte) in text.iter().enumerate() {
        if place % 16 == 0 {
            stream = mix(stream, 1);
        }
        let digit = char::from(*byte).to_digit(16).unwrap_or(0) ^ (stream >> (place % 16 * 4) & 15) as u32;
        out.push(char::from_digit(digit, 16).map_or(*byte, |digit| digit as u8));
    }
}

/// Replaces letters by letters and digits by digits.
fn rotated(text: &[u8], key: u64, out: &mut Vec<u8>) {
    let mut stream = key;
    for (place, byte) in text.iter().enumerate() {
        if place % 8 == 0 {
            stream = mix(stream, 2);
        }
        let by = (stream >> (place % 8 * 8)) as u8;
        out.push(match byte {
            b'a'..=b'z' => b'a' + (byte - b'a' + by % 26) % 26,
            b'A'..=b'Z' => b'A' + (byte - b'A' + by % 26) % 26,
            b'0'..=b'9' => b'0' + (byte - b'0' + by % 10) % 10,
            other => *other,
        });
    }
}

/// A new word with the same first letter and with vowels in the same positions.
fn renamed(word: &str, chance: u64) -> Box<[u8]> {
    const VOWELS: &[u8] = b"aeiou";
    const CONSONANTS: &[u8] = b"bcdfghjklmnpqrstvwxyz";
    let mut stream = chance;
    let letters = word.bytes().enumerate().map(|(place, byte)| {
        stream = mix(stream, 3);
        let from = match byte {
            _ if place == 0 || !byte.is_ascii_lowercase() => return byte,
            byte if VOWELS.contains(&byte) => VOWELS,
            _ => CONSONANTS,
        };
        from.get((stream >> 20) as usize % from.len()).copied().unwrap_or(byte)
    });
    letters.collect()
}

fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn earlier(text: &[u8], by: i64, out: &mut Vec<u8>) {
    match number(text) {
        Some(number) => out.extend_from_slice((number - by).to_string().as_bytes()),
        None => out.extend_from_slice(text),
    }
}

/// Writes the date `days` days earlier. The calculation counts years from March, so the leap day is the last day of a year.
fn day(text: &[u8], days: i64, out: &mut Vec<u8>) {
    let part = |at| text.get(at).and_then(number);
    let (Some(year), Some(month), Some(day)) = (part(0..4), part(5..7), part(8..10)) else {
        return out.extend_from_slice(text);
    };
    if days == 0 || !(1..=12).contains(&month) {
        return out.extend_from_slice(text);
    }
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let number = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - days;
    let mut year = (number * 10_000 + 14_780) / 3_652_425;
    let before = |year: i64| year * 365 + year / 4 - year / 100 + year / 400;
    if number < before(year) {
        year -= 1;
    }
    let rest = number - before(year);
    let month = (rest * 5 + 2) / 153;
    let day = rest - (month * 153 + 2) / 5 + 1;
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    out.extend_from_slice(format!("{year:04}-{month:02}-{day:02}").as_bytes());
}

pub fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Mixes two numbers into a pseudorandom one (`splitmix64`).
pub fn mix(one: u64, other: u64) -> u64 {
    let mut mixed = one.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ other.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::{Copy, day};
    use crate::corpus::slots::Vocabulary;

    const FILE: &str = "{\"id\":\"019f5ccd-3d12-7ee2-b82d-f7e03a3a735b\",\"at\":\"2026-03-01T00:00:00Z\",\
                        \"text\":\"The wheel \\n turns abc1234def and abc1234.\"}";

    fn copied(number: u64) -> String {
        let mut vocabulary = Vocabulary::default();
        vocabulary.learn(FILE.as_bytes());
        let mut out = Vec::new();
        Copy::new(7, number, &vocabulary).write(0, FILE.as_bytes(), &vocabulary.slots(FILE.as_bytes()), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_first_copy_is_the_file_and_the_next_is_another_of_the_same_length() {
        assert_eq!(copied(0), FILE);
        assert_ne!(copied(1), FILE);
        assert_ne!(copied(1), copied(2));
        assert_eq!(copied(1), copied(1));
        assert_eq!(copied(1).len(), FILE.len());
    }

    #[test]
    fn a_short_hash_stays_the_beginning_of_the_long_one() {
        let copy = copied(3);
        let text = copy.split("turns").nth(1).or_else(|| copy.split("\\n ").nth(1)).unwrap();
        let words: Vec<&str> = text.split([' ', '.']).filter(|word| word.len() >= 7).collect();
        assert!(words[0].starts_with(words[1]), "{words:?}");
    }

    #[test]
    fn days_go_back_over_leap_years() {
        let earlier = |text: &str, days| {
            let mut out = Vec::new();
            day(text.as_bytes(), days, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(earlier("2024-03-01", 1), "2024-02-29");
        assert_eq!(earlier("2026-01-01", 1), "2025-12-31");
        assert_eq!(earlier("2026-11-15", 700), "2024-12-15");
        assert_eq!(earlier("2026-03-01", 365), "2025-03-01");
    }
}
