//! Look-alike letters: what servers that normalise text or ignore its case make of a path. Knows nothing of segments.

mod table;

use table::FOLDS;

/// Whether some server could read ASCII where this text has none: a full-width slash, a ligature, the long s, an
/// invisible character within a word.
pub(super) fn turns_into_ascii(text: &str) -> bool {
    !text.is_ascii()
        && text
            .chars()
            .any(|character| is_ignorable(character) || fold_of(character).is_some())
}

/// The text in lower case, with look-alikes as the ASCII that they fold into and invisible characters left out; bytes
/// that are no UTF-8 become `joker`.
pub(super) fn folded(text: &[u8], joker: u8) -> Vec<u8> {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let mut out = Vec::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        for character in chunk
            .valid()
            .chars()
            .filter(|character| !is_ignorable(*character))
        {
            match fold_of(character) {
                Some(fold) => out.extend_from_slice(fold.as_bytes()),
                None => out.extend_from_slice(
                    character
                        .to_ascii_lowercase()
                        .encode_utf8(&mut [0; 4])
                        .as_bytes(),
                ),
            }
        }
        out.extend(chunk.invalid().iter().map(|_| joker));
    }
    out
}

fn fold_of(character: char) -> Option<&'static str> {
    if character.is_ascii() {
        return None;
    }
    let after = FOLDS.partition_point(|(first, _)| *first <= character);
    let (first, folds) = FOLDS.get(after.checked_sub(1)?)?;
    let at = u32::from(character).checked_sub(u32::from(*first))?;
    let fold = folds.split('\n').nth(usize::try_from(at).ok()?)?;
    Some(fold).filter(|fold| !fold.is_empty())
}

/// Characters that are not shown (Unicode's Default_Ignorable_Code_Point), control characters outside ASCII, and the
/// replacement for unknown ones.
const fn is_ignorable(character: char) -> bool {
    matches!(character,
        '\u{80}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffd}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests;
