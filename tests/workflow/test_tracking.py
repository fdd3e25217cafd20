"""A call without MLflow's server is a call like any other, but for one line."""

import pytest

from tracked import closed_port

METRICS = "results/own/metrics/untrained/pictures/seed0.json"


@pytest.mark.slow
def test_a_call_says_once_that_the_server_is_away_and_tracking_is_no_reason_to_run_anything_again(project):
    line = f"--cores 1 {METRICS} --configfile own.yaml"
    with closed_port() as uri:
        done = project.run(f"{line} --config tracking=True", MLFLOW_TRACKING_URI=uri)
        told = [each for each in (done.stdout + done.stderr).splitlines() if "is away" in each]
        assert done.returncode == 0, done.stderr
        assert len(told) == 1
        assert told[0].startswith(f"MLflow: {uri} is away (Connection refused)")
        assert (project.root / METRICS).is_file()
        again = project.run(f"-n {line} --config tracking=False", MLFLOW_TRACKING_URI=uri)
    assert "Nothing to be done" in again.stdout + again.stderr
