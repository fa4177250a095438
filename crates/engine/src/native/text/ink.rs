//! Colours, and how wide a line may be.

use super::words::wrapped;

/// Whether what is written is coloured, for a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ink {
    #[default]
    Plain,
    Coloured,
}

const RESET: &str = "\u{1b}[0m";

impl Ink {
    /// A text with the names of colours in brackets: `[green]+[reset] create`. Where there was one, the end is without any
    /// again; OpenTofu says so even where the text has said it.
    pub fn say(self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let (mut rest, mut named) = (text, false);
        while let Some(at) = rest.find('[') {
            let (before, from) = rest.split_at(at);
            out.push_str(before);
            let name = from.find(']').map_or("", |end| &from[1..end]);
            match code(name) {
                Some(code) => {
                    named = true;
                    if self == Ink::Coloured {
                        out.push_str(code);
                    }
                    rest = &from[name.len() + 2..];
                }
                None => {
                    out.push('[');
                    rest = &from[1..];
                }
            }
        }
        out.push_str(rest);
        if named && self == Ink::Coloured {
            out.push_str(RESET);
        }
        out
    }

    /// Colours alone, to be put before or behind a text of which nobody knows what is in it.
    pub fn codes(self, names: &str) -> String {
        match self {
            Ink::Plain => String::new(),
            Ink::Coloured => {
                names.split_inclusive(']').filter_map(|name| code(name.trim_matches(['[', ']']))).collect()
            }
        }
    }

    /// One of two texts that are the same but for the colour, where it is written too often to be put together each time.
    pub(super) fn choose(self, plain: &'static str, coloured: &'static str) -> &'static str {
        match self {
            Ink::Plain => plain,
            Ink::Coloured => coloured,
        }
    }
}

fn code(name: &str) -> Option<&'static str> {
    Some(match name {
        "reset" => RESET,
        "bold" => "\u{1b}[1m",
        "underline" => "\u{1b}[4m",
        "red" => "\u{1b}[31m",
        "green" => "\u{1b}[32m",
        "yellow" => "\u{1b}[33m",
        "cyan" => "\u{1b}[36m",
        "dark_gray" => "\u{1b}[90m",
        _ => return None,
    })
}

/// What is written on.
#[derive(Clone, Copy, Debug)]
pub struct Sheet {
    pub ink: Ink,
    /// The columns of the terminal.
    pub columns: usize,
}

impl Default for Sheet {
    /// Where nobody says how wide a terminal is.
    fn default() -> Sheet {
        Sheet { ink: Ink::Plain, columns: 78 }
    }
}

impl Sheet {
    /// Paragraphs in lines that fit; the last column stays free.
    pub fn wrapped(&self, text: &str) -> String {
        wrapped(text, self.columns.saturating_sub(1))
    }

    /// A line across, with an empty one before it.
    pub fn rule(&self) -> String {
        self.ink.say(&format!("[dark_gray]\n{}", "─".repeat(self.columns.saturating_sub(1))))
    }
}

#[cfg(test)]
mod tests {
    use super::Ink;

    #[test]
    fn names_of_colours_become_colours() {
        assert_eq!(Ink::Coloured.say("a[\"k\"] [green]+[reset] [x]"), "a[\"k\"] \u{1b}[32m+\u{1b}[0m [x]\u{1b}[0m");
        assert_eq!(Ink::Plain.say("[bold]a[0][reset] ["), "a[0] [");
        assert_eq!(Ink::Coloured.say("a[0]"), "a[0]");
    }
}
