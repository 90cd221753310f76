"""Guessing passwords is slow, and counting it takes bounded memory."""

from sparkmirror.connect.rest.authentication import OF_A_USER, OF_AN_ADDRESS, FailedLogins

HERE = "192.0.2.1"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_user_waits_after_some_failures_and_not_for_ever() -> None:
    clock = Clock()
    failed = FailedLogins(clock)
    for _ in range(OF_A_USER.failures):
        assert failed.wait_s(HERE, "ops") == 0
        failed.note(HERE, "ops")
    assert failed.wait_s(HERE, "ops") == 6
    assert failed.wait_s("192.0.2.2", "ops") == 0
    assert failed.wait_s(HERE, "other") == 0
    clock.now += 6
    assert failed.wait_s(HERE, "ops") == 0
    failed.note(HERE, "ops")
    assert failed.wait_s(HERE, "ops") == 6


def test_a_right_password_ends_the_count() -> None:
    failed = FailedLogins(Clock())
    for _ in range(OF_A_USER.failures - 1):
        failed.note(HERE, "ops")
    failed.forget(HERE, "ops")
    failed.note(HERE, "ops")
    assert failed.wait_s(HERE, "ops") == 0


def test_names_can_not_be_tried_one_after_the_other() -> None:
    failed = FailedLogins(Clock())
    for number in range(OF_AN_ADDRESS.failures):
        failed.note(HERE, f"user{number}")
    assert failed.wait_s(HERE, "unheard of") == 1
    assert failed.wait_s("192.0.2.2", "unheard of") == 0


def test_a_network_of_ipv6_counts_as_one_and_a_mapped_address_as_itself() -> None:
    failed = FailedLogins(Clock())
    for number in range(OF_A_USER.failures):
        failed.note(f"2001:db8::{number:x}%eth0", "ops")
        failed.note(f"::ffff:{HERE}", "ops")
    assert failed.wait_s("2001:db8::ffff", "ops") > 0
    assert failed.wait_s("2001:db8:0:1::1", "ops") == 0
    assert failed.wait_s(HERE, "ops") > 0
    assert failed.wait_s("::ffff:192.0.2.2", "ops") == 0


def test_memory_is_bounded() -> None:
    failed = FailedLogins(Clock())
    for number in range(12_000):
        failed.note(f"10.0.{number >> 8}.{number & 255}", "x")
    assert len(failed._counts) == 10_000
