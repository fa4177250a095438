//! Any valid selection is answered with exactly the fields that it selects, under the names that it gives them.

use landform_sim::Limits;
use proptest::prelude::Rng;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use crate::Cato;

const QUERIES: usize = 300;

#[tokio::test(flavor = "multi_thread")]
async fn any_valid_query_is_answered_as_it_was_asked() {
    let cato = Cato::start(Limits::none()).await;
    let site = cato.add_site("berlin").await["data"]["site"]["made"]["siteId"].as_str().expect("an id").to_owned();
    let peer = cato.answer(ADD_PEER, json!({"site": site})).await;
    let peer = peer["data"]["site"]["addBgpPeer"]["bgpPeer"]["id"].as_str().expect("an id").to_owned();
    let schema = include_str!("../../src/cato/schema.graphql");
    let schema = apollo_compiler::Schema::parse_and_validate(schema, "schema.graphql").expect("a schema");
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    for _ in 0..QUERIES {
        let mut writer = Writer { schema: &schema, random: runner.rng(), fragments: Vec::new(), aliases: 0 };
        let reference = format!("{{by: ID, input: \"{site}\"}}");
        let roots = [
            (
                "SiteQueries",
                format!("site(accountId: \"1\") {{ it: siteGeneralDetails(site: {reference}) "),
                "SiteGeneralDetailsPayload",
                " }",
            ),
            (
                "SiteQueries",
                format!("site(accountId: \"1\") {{ it: networkRangeList(input: {{site: {reference}}}) "),
                "NetworkRangeListPayload",
                " }",
            ),
            (
                "SiteQueries",
                format!("site(accountId: \"1\") {{ it: bgpPeer(input: {{input: \"{peer}\"}}) "),
                "BgpPeer",
                " }",
            ),
            ("Query", "it: entityLookup(accountID: \"1\", type: siteRange) ".to_owned(), "EntityLookupResult", ""),
            ("Query", "it: accountSnapshot(accountID: \"1\") ".to_owned(), "AccountSnapshot", ""),
        ];
        let (parent, head, ty, tail) = &roots[writer.below(roots.len())];
        let (text, shape) = writer.selection(ty, 0);
        let query = format!("query any {{ {head}{text}{tail} }}\n{}", writer.fragments.join("\n"));
        let answer = cato.answer(&query, Value::Null).await;
        assert!(answer.get("errors").is_none(), "{query}\n{answer}");
        let data = if *parent == "Query" { &answer["data"] } else { &answer["data"]["site"] };
        assert!(!data["it"].is_null(), "{query}\n{answer}");
        fits(&shape, &data["it"], &query);
    }
}

const ADD_PEER: &str = r#"mutation add($site: String!) {
  site(accountId: "1") {
    addBgpPeer(input: {
      site: {input: $site}, name: "edge", peerAsn: "65001", catoAsn: "65000", peerIp: "192.0.2.1", defaultAction: DROP,
      summaryRoute: [{route: "10.0.0.0/8", community: [{from: "1", to: "2"}]}],
      defaultActionExclusion: [{bgpRouteExactFilterRule: {networkSubnet: ["10.9.0.0/16"]}}],
      bfdSettings: {}, tracking: {subscriptionId: "7"}
    }) { bgpPeer { id } }
  }
}"#;

/// Which names an answer must have, and what is below them. A leaf has nothing below.
type Shape = Vec<(String, Option<Below>)>;

struct Below(Shape);

fn fits(shape: &Shape, value: &Value, query: &str) {
    match value {
        Value::Null => {}
        Value::Array(values) => values.iter().for_each(|value| fits(shape, value, query)),
        Value::Object(map) => {
            let mut wanted: Vec<_> = shape.iter().map(|(name, _)| name.as_str()).collect();
            wanted.sort_unstable();
            wanted.dedup();
            let mut got: Vec<_> = map.keys().map(String::as_str).collect();
            got.sort_unstable();
            assert_eq!(got, wanted, "{query}");
            for (name, below) in shape {
                if let Some(Below(below)) = below {
                    fits(below, &map[name], query);
                }
            }
        }
        leaf => panic!("{leaf} where an object was selected: {query}"),
    }
}

struct Writer<'a> {
    schema: &'a apollo_compiler::Schema,
    random: &'a mut TestRng,
    fragments: Vec<String>,
    /// Every field gets a name of its own, so that no two selections of one object have to be merged.
    aliases: usize,
}

impl Writer<'_> {
    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.random.next_u64() % end as u64).expect("a small number")
    }

    /// A random selection of the type's fields, in braces, and the shape of its answer.
    fn selection(&mut self, ty: &str, depth: usize) -> (String, Shape) {
        let schema = self.schema;
        let Some(object) = schema.get_object(ty) else {
            // A union: the one thing that all its members have.
            return ("{ __typename }".to_owned(), vec![("__typename".to_owned(), None)]);
        };
        let mut shape = Shape::new();
        let mut text = String::new();
        for (name, field) in &object.fields {
            if self.below(3) == 0 {
                continue;
            }
            let inner = field.ty.inner_named_type();
            let is_leaf = schema.types.get(inner).is_none_or(|ty| ty.is_scalar() || ty.is_enum());
            if !is_leaf && depth > 3 {
                continue;
            }
            self.aliases += 1;
            let alias = format!("a{}", self.aliases);
            let below = (!is_leaf).then(|| self.selection(inner, depth + 1));
            let (inside, below) = below.map_or((String::new(), None), |(text, shape)| (text, Some(Below(shape))));
            let selected = format!("{alias}: {name} {inside}");
            text.push_str(&match self.below(5) {
                0 => format!("... on {ty} {{ {selected} }} "),
                1 => {
                    self.fragments.push(format!("fragment f{alias} on {ty} {{ {selected} }}"));
                    format!("...f{alias} ")
                }
                2 => format!("... @include(if: true) {{ {selected} }} "),
                _ => format!("{selected} "),
            });
            shape.push((alias, below));
        }
        text.push_str("__typename");
        shape.push(("__typename".to_owned(), None));
        (format!("{{ {text} }}"), shape)
    }
}
