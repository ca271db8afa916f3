//! One agent of a plan as a flag says it: `build*3:builder@2<plan=Do your part`.

use super::Member;
use crate::Name;

const FORM: &str = "NAME[*INSTANCES][:ROLE][@STAGE][<NEED,…][=TASK]";

impl Member {
    /// The agent that a flag says. Its task is empty where it has none of its own.
    pub fn from_flag(text: &str) -> Result<Member, String> {
        let (head, task) = text.split_once('=').unwrap_or((text, ""));
        let ends = head.find(['*', ':', '@', '<']).unwrap_or(head.len());
        let (name, mut rest) = head.split_at(ends);
        let mut member = Member::new(named(name)?, task.trim());
        while let Some(sign) = rest.chars().next() {
            let after = &rest[sign.len_utf8()..];
            let (said, next) = after.split_at(after.find(['*', ':', '@', '<']).unwrap_or(after.len()));
            match sign {
                '*' => member.instances = number(said, "instances")?,
                ':' => member.role = named(said)?,
                '@' => member.stage = Some(number(said, "a stage")?),
                _ => member.needs = said.split(',').map(named).collect::<Result<_, _>>()?,
            }
            rest = next;
        }
        Ok(member)
    }
}

fn named(text: &str) -> Result<Name, String> {
    text.trim()
        .parse()
        .map_err(|error| format!("\"{}\" is no name: {error}; the form is {FORM}", text.trim()))
}

fn number(text: &str, of: &str) -> Result<u32, String> {
    let number = text.trim().parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("\"{}\" is no number of {of}; the form is {FORM}", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_said_in_one_flag() {
        let member = Member::from_flag("build*3:builder@2<plan,look=Do your part: a=b").unwrap();
        assert_eq!((member.name.as_str(), member.role.as_str()), ("build", "builder"));
        assert_eq!((member.instances, member.stage), (3, Some(2)));
        assert_eq!(member.needs.iter().map(Name::as_str).collect::<Vec<_>>(), ["plan", "look"]);
        assert_eq!(member.task, "Do your part: a=b", "what comes after the first = is the task");
        let plain = Member::from_flag("review").unwrap();
        assert_eq!(plain, Member::new("review".parse().unwrap(), ""));
    }

    #[test]
    fn what_cannot_be_read_is_said_with_the_form() {
        for (text, words) in [
            ("=task", "is no name"),
            ("a*x", "\"x\" is no number of instances"),
            ("a*0", "\"0\" is no number of instances"),
            ("a@one", "\"one\" is no number of a stage"),
            ("a<", "is no name"),
        ] {
            let why = Member::from_flag(text).unwrap_err();
            assert!(why.contains(words) && why.contains("NAME[*INSTANCES]"), "{text}: {why}");
        }
    }
}
