# Has a repository forget the tree of a merge that was ended in the middle: it was in a sandbox, and went with it.
#   $1 campaign  $2 mission
for known in "$1"/.git/worktrees/*; do
    case "$(cat "$known/gitdir" 2>/dev/null)" in
        */ostler-merge-"$2"/.git) rm -rf "$known" ;;
    esac
done
