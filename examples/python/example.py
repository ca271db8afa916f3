"""Lists sessions, starts one with the scripted agent, and follows it to its end.

    python example.py CAMPAIGN ["a prompt"]
"""

import json
import os
import sys

from ostler_client import Ostler, Refused


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    # The daemon does not know where this program runs: a path must be whole.
    campaign = os.path.abspath(sys.argv[1]) if os.path.isdir(sys.argv[1]) else sys.argv[1]
    prompt = sys.argv[2] if len(sys.argv) > 2 else json.dumps({"steps": [{"say": "hello from Python"}]})
    ostler = Ostler(os.environ.get("OSTLER", "ostler"))
    try:
        listed = ostler.call("SessionService", "ListSessions", limit=10)
        print(f"{len(listed.sessions)} sessions")
        session = ostler.change(
            "SessionService",
            "CreateSession",
            campaign=campaign,
            provider="script",
            initial_message=prompt,
            ends_with_turn=True,
        ).session
        print(f"started {session.id}")
        for event in ostler.events(session.id):
            body = json.loads(event.body)
            print(event.seq, event.kind, body.get("text", ""))
            if event.kind in ("SESSION_STOPPED", "SESSION_FAILED"):
                print(f"ended {body['outcome']}")
                return 0 if body["outcome"] == "done" else 1
    except Refused as refused:
        print(f"error: {refused}", file=sys.stderr)
        for hint in refused.hints:
            print(f"  try: {hint}", file=sys.stderr)
        return 1
    return 1


if __name__ == "__main__":
    sys.exit(main())
