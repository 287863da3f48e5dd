"""`wattline run` among things that go wrong around it: a closed terminal, poisoned messages, odd folders."""

from __future__ import annotations

import subprocess
import time

from cli.running import WATTLINE, Desk, assert_nothing_is_left
from wattline.state import Asked, JobRequest, Noticed, RunSubmitted


def test_nobody_looking_is_no_reason_to_stop_training(desk: Desk) -> None:
    desk.pipeline({"train": "import time; time.sleep(1)"})
    process = subprocess.Popen(
        [str(WATTLINE), "run", str(desk.folder / "wattline.yaml")],
        env={"PATH": "/usr/bin:/bin", "WATTLINE_HOME": str(desk.home), "HOME": str(desk.home.parent)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    process.stderr.readline()
    process.stderr.close()
    assert process.wait(timeout=60) == 0
    (run,) = desk.state().runs.values()
    assert run.status == "succeeded"
    assert_nothing_is_left(desk)


def test_a_message_that_names_paths_or_lacks_its_source_is_passed_over(desk: Desk) -> None:
    desk.pipeline({"train": "pass"})
    assert desk.run().code == 0
    now = time.time()

    def submission(run: str, documents: dict[str, str], at: float = now) -> RunSubmitted:
        request = JobRequest(job=f"{run}/train", run=run)
        return RunSubmitted(
            at=at, project="p", run=run, pipeline="evil", jobs=(request,), documents=documents
        )

    whole = {"pipeline": "sha256:0", "bundle": "sha256:0", "folder": "/"}
    with desk.session() as session:
        session.tell(submission("../../evil", whole))
        session.tell(submission("evil", {}))
        session.tell(submission("late", whole, at=now + 3600))
        session.tell(Asked(at=now + 1e9, job="nobody", want="pause"))
        session.store.inbox.put("garbage", "event", b"{")
    assert desk.run().code == 0
    state = desk.state()
    assert {run.pipeline for run in state.runs.values()} == {"small"}
    assert state.at < now + 600
    passed_over = [event.say for event in desk.events() if isinstance(event, Noticed)]
    assert len([say for say in passed_over if "passed over" in say]) == 5
    assert_nothing_is_left(desk)


def test_a_run_that_cannot_be_concluded_does_not_keep_others_from_it(desk: Desk) -> None:
    desk.pipeline({"train": "pass"})
    assert desk.run().code == 0
    request = JobRequest(job="lost/train", run="lost", restart_max=0)
    digest = "sha256:" + "0" * 64
    documents = {"pipeline": digest, "bundle": digest, "folder": "/nowhere"}
    with desk.session() as session:
        session.tell(
            RunSubmitted(
                at=time.time(),
                project="p",
                run="lost",
                pipeline="other",
                jobs=(request,),
                documents=documents,
            )
        )
    ran = desk.run()
    assert (ran.code, ran.json["status"]) == (0, "succeeded"), ran.err
    lost = desk.state().runs["lost"]
    assert lost.status == "not concluded"
    assert digest[7:20] in lost.say or "object" in lost.say


def test_the_state_folder_is_never_part_of_the_source(desk: Desk) -> None:
    desk.home = desk.folder / "state"
    desk.pipeline({"train": "import pathlib, sys; sys.exit(pathlib.Path('state').exists())"})
    assert desk.run().code == 0
    assert desk.run().code == 0


def test_a_script_that_git_ignores_is_missed_before_anything_runs(desk: Desk) -> None:
    desk.pipeline({"train": "pass"})
    desk.write(".gitignore", "train.py\n")
    subprocess.run(["git", "init", "-q", str(desk.folder)], check=True)
    ran = desk.run()
    assert ran.code == 1
    assert "train.py is there but not in the source bundle; is it ignored by Git?" in ran.err
    assert not desk.found("runs/*")


def test_a_rule_that_asks_for_approval_lets_an_approved_run_pass(desk: Desk) -> None:
    desk.pipeline({"train": "pass"})
    rule = {"name": "approved", "when": "!job.approved", "say": "ask first", "mode": "block"}
    desk.write("policy.yaml", {"policy": "strict", "rules": [rule]})
    refused = desk.run()
    assert refused.code == 1
    assert "ask first" in refused.err
    assert desk.run("--approved-by", "ada").code == 0


def test_the_end_of_what_a_failing_script_said_is_shown(desk: Desk) -> None:
    desk.write("train.py", "print('before'); raise SystemExit('no such corpus')")
    desk.pipeline({"train": {"run": "python train.py", "restart": {"max": 0}}})
    ran = desk.run()
    assert ran.code == 1
    assert "| no such corpus" in ran.err
    assert "wattline logs" in ran.err


def test_a_run_to_resume_is_named_only_with_resume() -> None:
    ran = subprocess.run(
        [str(WATTLINE), "run", "--run", "x"], capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.returncode == 2
    assert "add --resume" in ran.stderr
