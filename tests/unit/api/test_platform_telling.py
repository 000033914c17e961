"""The state of the platform, made of what its programs tell as metrics."""

from __future__ import annotations

import pytest

from api.platform.telling import Programs, samples
from servioticy.settings import Settings, changed
from servioticy.settings.places import METRICS_PROCESSES, platform


def of(program: str, platform: str = platform(Settings())) -> str:
    """Which process it is."""
    labels = f'program="{program}",release="1",platform="{platform}"'
    return f"servioticy_process_info{{{labels}}} 1.0\n"


TOLD = {
    9400: of("up")
    + """# HELP servioticy_program_up 1 while the program is ready
servioticy_program_up{program="pipeline"} 1.0
servioticy_program_up{program="kafka"} 0.0
servioticy_program_starts_total{program="pipeline"} 3.0
""",
    9401: of("api")
    + "process_resident_memory_bytes 1.5e+06\nprocess_start_time_seconds 1.7e+09\n",
    9402: of("delivery") + "servioticy_delivery_tenants_resting 2.0\n",
    9403: of("pipeline")
    + """servioticy_lag_records{partition="1"} 7.0
servioticy_lag_records{partition="0"} 5.0
servioticy_put_off_records_waiting{partition="1"} 4.0
servioticy_tenant_put_off_records{partition="0",tenant="5"} 3.0
servioticy_tenant_put_off_records{partition="1",tenant="5"} 4.0
servioticy_tenant_put_off_records{partition="1",tenant="6"} 0.0
servioticy_tenant_over_share_seconds{partition="0",tenant="5"} 0.0
servioticy_tenant_over_share_seconds{partition="1",tenant="5"} 1.5
servioticy_tenant_over_share_seconds{partition="1",tenant="6"} 0.5
servioticy_sandbox_kills_total{kind="timeout"} 2.0
servioticy_sandbox_kills_total{kind="oom"} 0.0
servioticy_sandbox_frames_total 90.0
servioticy_sandbox_workers 3.0
servioticy_computations_total{verdict="emitted"} 80.0
""",
}


class Ports:
    """What is told at each port; the others refuse."""

    def __init__(self, **more: str) -> None:
        self.asked = 0
        self._told = TOLD | {int(port[1:]): told for port, told in more.items()}

    def __call__(self, _host: str, port: int) -> str:
        self.asked += 1
        if port not in self._told:
            raise ConnectionRefusedError("refused")
        return self._told[port]


def test_what_programs_tell_stands_together() -> None:
    told = Programs(Settings(), Ports()).told()

    programs = {each.pop("name"): each for each in told["programs"]}
    assert programs["pipeline"] == {"ready": True, "starts": 3}
    assert programs["kafka"] == {"ready": False}
    assert programs["api"] == {"memoryBytes": 1_500_000, "since": 1_700_000_000_000}
    assert programs["broker"] == {"lack": "no answer at port 9404: refused"}
    assert "up" not in programs
    assert told["partitions"] == [
        {"partition": 0, "behind": 5, "putOff": 0},
        {"partition": 1, "behind": 7, "putOff": 4},
    ]
    assert told["pressing"] == [
        {"tenant": 5, "partition": 1, "putOff": 4, "overSeconds": 1.5},
        {"tenant": 5, "partition": 0, "putOff": 3, "overSeconds": 0.0},
        {"tenant": 6, "partition": 1, "putOff": 0, "overSeconds": 0.5},
    ]
    assert told["sandbox"] == {"workers": 3, "frames": 90, "kills": {"timeout": 2}}
    assert told["computations"] == {"emitted": 80}
    assert told["restingTenants"] == 2


def test_twenty_that_press_are_told() -> None:
    lines = [
        f'servioticy_tenant_put_off_records{{partition="{n}",tenant="1"}} {n}' for n in range(30)
    ]
    ports = Ports(p9403="\n".join([of("pipeline"), *lines, ""]))
    told = Programs(Settings(), ports).told()

    assert [each["putOff"] for each in told["pressing"]] == [*range(29, 9, -1)]


def test_who_asks_again_at_once_asks_no_program() -> None:
    ports = Ports()
    programs = Programs(Settings(), ports)
    assert programs.told() is programs.told()
    assert ports.asked == 6 * METRICS_PROCESSES


def test_each_of_several_processes_is_told() -> None:
    """And of a standby no partition."""
    memory = "process_resident_memory_bytes 2.0\n"
    ports = Ports(
        p9502=of("delivery") + memory,
        p9503=of("pipeline"),
        p9604=of("broker") + memory,
        p9501=of("api", "another") + memory,
        p9605=memory,
    )
    told = Programs(Settings(), ports).told()

    programs = {each["name"]: each for each in told["programs"]}
    assert programs["delivery at 9502"]["memoryBytes"] == programs["broker at 9604"]["memoryBytes"]
    assert {"delivery", "api"} <= programs.keys()
    assert "broker" not in programs, "one is there, if not at the first port"
    assert not {"api at 9501", "functions at 9605"} & programs.keys(), "they are others'"
    assert len(told["partitions"]) == 2


def test_what_is_another_platforms_is_not_told() -> None:
    ports = Ports(p9404=of("broker", "another"))
    programs = {each["name"]: each for each in Programs(Settings(), ports).told()["programs"]}

    assert programs["broker"] == {"name": "broker", "lack": "port 9404 is another program's"}


def test_a_program_without_a_port_for_it_is_not_asked() -> None:
    programs = Programs(changed(Settings(), api_metrics_port=0), Ports())
    lacks = {each["name"]: each.get("lack") for each in programs.told()["programs"]}
    assert lacks["api"] == "it has no port for metrics"


@pytest.mark.parametrize("text", ["", "# only this\n", "nonsense", 'a{b="c"}'])
def test_what_is_no_metric_tells_nothing(text: str) -> None:
    assert samples(text) == {}
