//! The text of statements: written once, in words that each dialect says in its own way (see `db`).

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

type Words = &'static [(&'static str, &'static str)];

const SQLITE_WORDS: Words = &[
    ("{now}", "CAST(unixepoch('subsec') * 1000 AS INTEGER)"),
    ("{json}", ""),
    ("{lock_or_skip}", ""),
    ("{skip_locked}", ""),
    ("{lock_both}", ""),
    ("{lock_shared}", ""),
    ("{lock}", ""),
    // SQLite looks at the value of a bare limit to plan by it, and so plans anew each time that one is given.
    ("LIMIT $", "LIMIT 0 + $"),
    // With a question mark SQLite takes a placeholder's number for its place; with a dollar it would be a name.
    ("$", "?"),
    ("{strings ", "(SELECT key AS at, value FROM json_each("),
    ("}", ")) AS e"),
];
const POSTGRES_WORDS: Words = &[
    ("{now}", "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"),
    ("{json}", "::jsonb"),
    ("{lock_or_skip}", "FOR UPDATE OF d, r SKIP LOCKED"),
    ("{skip_locked}", "FOR UPDATE SKIP LOCKED"),
    ("{lock_both}", "FOR UPDATE OF d, r"),
    ("{lock_shared}", "FOR KEY SHARE"),
    ("{lock}", "FOR UPDATE"),
    ("{strings ", "(SELECT n - 1 AS at, value FROM jsonb_array_elements_text(CAST("),
    ("}", " AS JSONB)) WITH ORDINALITY AS a(value, n)) AS e"),
];

/// A statement in a dialect, as it is sent. Its text never changes, so it is made once.
pub(crate) fn render(sql: &'static str, dialect: Dialect) -> Arc<str> {
    // A text of the program is known by its place: that is fixed, and looking at it costs less than looking at the text.
    type Known = RwLock<HashMap<(Dialect, usize, usize), Arc<str>>>;
    static KNOWN: LazyLock<Known> = LazyLock::new(Known::default);
    let place = (dialect, sql.as_ptr() as usize, sql.len());
    if let Some(known) = KNOWN.read().unwrap_or_else(PoisonError::into_inner).get(&place) {
        return known.clone();
    }
    let words = match dialect {
        Dialect::Sqlite => SQLITE_WORDS,
        Dialect::Postgres => POSTGRES_WORDS,
    };
    let text = words.iter().fold(sql.to_owned(), |text, (word, meaning)| text.replace(word, meaning));
    let text: Arc<str> = text.into();
    KNOWN.write().unwrap_or_else(PoisonError::into_inner).insert(place, text.clone());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dialect_says_the_words_in_its_own_way() {
        let sql = "SELECT e.value FROM {strings $1} WHERE $2 < {now} {lock}";
        assert_eq!(
            &*render(sql, Dialect::Sqlite),
            "SELECT e.value FROM (SELECT key AS at, value FROM json_each(?1)) AS e \
             WHERE ?2 < CAST(unixepoch('subsec') * 1000 AS INTEGER) "
        );
        assert!(render(sql, Dialect::Postgres).ends_with("AS BIGINT) FOR UPDATE"));
        let some = "SELECT 1 LIMIT $1";
        assert_eq!(&*render(some, Dialect::Sqlite), "SELECT 1 LIMIT 0 + ?1");
        assert_eq!(&*render(some, Dialect::Postgres), some);
        assert!(Arc::ptr_eq(&render(sql, Dialect::Sqlite), &render(sql, Dialect::Sqlite)));
    }
}
