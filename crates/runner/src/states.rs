use landform_domain::{Code, Problem, StateEdit};
use landform_engine::state::State;
use landform_store::{EditedState, StateEditor};

/// Edits states with what the engines know of their format.
#[derive(Debug)]
pub struct FormatEditor;

impl StateEditor for FormatEditor {
    fn edit(&self, state: &[u8], edit: &StateEdit) -> Result<EditedState, Problem> {
        let unreadable =
            |error: landform_engine::state::StateError| Problem::new(Code::StateInvalid, error.to_string());
        let invalid = |message: String| Problem::new(Code::AddressInvalid, message);
        let base = State::read(state).map_err(unreadable)?;
        let mut state = base.clone();
        let addresses: Vec<String> = match edit {
            StateEdit::Remove { addresses } => {
                // One that matches nothing may be a typing mistake, so nothing is done at all.
                let known = |wanted: &&String| !base.objects().any(|object| object.address.is_within(wanted));
                if let Some(nothing) = addresses.iter().find(known) {
                    return Err(invalid(format!("there is nothing at {nothing}")));
                }
                state.remove_within(addresses).iter().map(|object| object.address.to_string()).collect()
            }
            StateEdit::Move { from, to } => {
                let said = |problems: Vec<landform_engine::Diagnostic>| {
                    invalid(problems.iter().map(|one| one.detail.as_str()).collect::<Vec<_>>().join(" "))
                };
                let moved = state.rename(from, to).map_err(said)?;
                moved.iter().flat_map(|one| &one.objects).map(ToString::to_string).collect()
            }
        };
        state.follow(Some(&base));
        Ok(EditedState { state: state.write(), addresses })
    }
}
