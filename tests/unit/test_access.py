"""Who may do what: one rule, and each of its uses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from servioticy.domain.access import (
    OF_GRANTS,
    OF_OBJECT_TOKENS,
    OF_ROLES,
    MemberRole,
    Resource,
    Right,
    Scope,
    granted_of,
    losing,
    may,
    readable,
    scope_of,
    seen_by,
)
from servioticy.domain.model import (
    Channel,
    Composite,
    Definition,
    Grant,
    Group,
    Input,
    ServiceObject,
    Stream,
    StreamRef,
)

OWNER, OTHER = 1, 2


@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize("right", Right)
def test_an_owner_may_do_everything(right: Right, public: bool) -> None:
    assert may(OWNER, right, Resource((OWNER,), public))


@pytest.mark.parametrize("right", Right)
def test_others_may_do_nothing_with_what_is_not_public(right: Right) -> None:
    assert not may(OTHER, right, Resource((OWNER,)))


@pytest.mark.parametrize("right", Right)
def test_others_may_read_what_is_public_and_have_it_sent(right: Right) -> None:
    """Verdicts and earlier versions tell what may be private."""
    allowed = {Right.READ, Right.SUBSCRIBE}

    assert may(OTHER, right, Resource((OWNER,), True)) is (right in allowed)
    assert allowed == OF_GRANTS


def test_what_belongs_to_two_is_for_both() -> None:
    shared = Resource((OWNER, OTHER))

    assert may(OWNER, Right.SUBSCRIBE, shared)
    assert may(OTHER, Right.SUBSCRIBE, shared)
    assert not may(3, Right.READ, shared)


def reading(id_: str, tenant: int, public: bool, *members: str) -> ServiceObject:
    """A Service Object with a stream `s` that reads the streams `s` of others."""
    inputs = (Input("g", tuple(StreamRef(each, "s") for each in members)),)
    composite = Composite("function", inputs, (Channel("x", "number"),)) if members else None
    stream = Stream(StreamRef(id_, "s"), (Channel("x", "number"),), composite)
    groups = (Group("g", members, "s"),) if members else ()
    return ServiceObject(Definition(id_, (stream,), groups, public), tenant, 1, 1, {})


def members(service_object: ServiceObject) -> list[str]:
    composite = service_object.definition.streams[0].composite
    assert composite is not None
    return [each.service_object for each in composite.inputs[0].members]


def test_groups_read_nothing_private_of_others() -> None:
    own, public, private, foreign = (
        reading("own", OWNER, False),
        reading("public", OTHER, True),
        reading("private", OTHER, False),
        reading("reader", OWNER, False, "own", "public", "private", "elsewhere"),
    )

    *_, reader = readable([own, public, private, foreign])

    assert members(reader) == ["own", "public", "elsewhere"]


def test_groups_of_one_tenant_read_everything() -> None:
    objects = [reading("private", OWNER, False), reading("reader", OWNER, False, "private")]

    assert readable(objects) is objects


def test_private_ones_of_others_are_not_visible() -> None:
    objects = [reading("own", OWNER, False), reading("a", OTHER, True), reading("b", OTHER, False)]

    sees = seen_by(OWNER, objects)

    assert [sees(StreamRef(each, "s")) for each in ("own", "a", "b", "none")] == [
        True,
        True,
        False,
        False,
    ]


def granting(*grants: Grant) -> ServiceObject:
    """A private Service Object of OTHER with these grants."""
    return replace(reading("theirs", OTHER, False), grants=grants)


@pytest.mark.parametrize(
    ("grant", "derives", "reads"),
    [
        (Grant("g", OWNER), True, True),
        (Grant("g", None), True, True),
        (Grant("g", 3), False, False),
        (Grant("g", OWNER, "s"), True, True),
        (Grant("g", OWNER, "other"), False, False),
        (Grant("g", OWNER, "s", derived_only=True), True, False),
        (Grant("g", None, None, derived_only=True), True, False),
    ],
)
def test_a_grant_is_for_whom_and_what_it_names(grant: Grant, derives: bool, reads: bool) -> None:
    """One for what is derived gives no updates."""
    rule = granted_of(granting(grant))

    assert (rule.may_derive(OWNER, "s"), rule.may_read(OWNER, "s")) == (derives, reads)
    assert rule.may_derive(OTHER, "s")
    assert seen_by(OWNER, [granting(grant)])(StreamRef("theirs", "s")) is reads


@pytest.mark.parametrize("derived_only", [False, True])
def test_groups_read_what_is_granted(derived_only: bool) -> None:
    reader = reading("reader", OWNER, False, "theirs")
    grant = Grant("g", OWNER, "s", derived_only)

    assert members(readable([granting(grant), reader])[1]) == ["theirs"]
    assert members(readable([granting(), reader])[1]) == []


def test_who_loses_a_grant_is_told_unless_another_one_is_left() -> None:
    readers = [
        reading("a", OWNER, False, "theirs"),
        reading("b", 3, False, "theirs"),
        reading("c", OTHER, False, "theirs"),
        reading("d", OWNER, False, "elsewhere"),
    ]
    both = granting(Grant("g", OWNER), Grant("h", None, "s"))
    one, none = granting(Grant("g", OWNER)), granting()

    def told(before: ServiceObject, after: ServiceObject) -> list[str]:
        return [each.id for each, _stream in losing(before, after, readers)]

    assert told(both, none) == ["a", "b"]
    assert told(both, one) == ["b"]
    assert told(one, none) == ["a"]
    assert told(none, both) == []


@pytest.mark.parametrize("right", Right)
def test_a_token_of_a_service_object_reaches_no_further(right: Right) -> None:
    """A device that is stolen changes nothing, and nothing else is known to it."""
    device, whole = Scope("so"), Scope()
    assert device.reaches("so", "s", right) is (right in OF_OBJECT_TOKENS)
    assert not device.reaches("other", "s", right)
    assert not device.reaches(None, None, right)
    assert whole.reaches("so", "s", right)
    assert whole.reaches(None, None, right)


def test_each_role_may_do_what_the_one_before_may_and_more() -> None:
    viewer, operator, developer, admin = (OF_ROLES[each] for each in MemberRole)

    assert viewer < operator < developer < admin == set(Right)
    assert not viewer & {Right.SEND, Right.ACTUATE, Right.CREATE, Right.CHANGE}
    assert Right.ADMIN not in developer


@pytest.mark.parametrize("role", MemberRole)
@pytest.mark.parametrize("right", Right)
def test_a_member_reaches_what_its_role_is_for(role: MemberRole, right: Right) -> None:
    """Of all that its tenant has; an admin is as good as the tenant's own token."""
    for named in (("so", "s"), ("so", None), (None, None)):
        assert scope_of(role).reaches(*named, right) is (right in OF_ROLES[role])
    assert scope_of(MemberRole.ADMIN) == Scope()


@pytest.mark.parametrize("right", Right)
def test_a_scope_is_as_narrow_as_it_says(right: Right) -> None:
    reader, of_stream = Scope(rights=["read"]), Scope("so", "s")
    assert reader.reaches("so", None, right) is (right is Right.READ)
    assert of_stream.reaches("so", "s", right) is (right in OF_OBJECT_TOKENS)
    assert not of_stream.reaches("so", None, right)
    assert not of_stream.reaches("so", "other", right)
    assert Scope("so", rights=["change"]).reaches("so", None, right) is (right is Right.CHANGE)
    assert not Scope(rights=[]).reaches("so", None, right)


def test_a_device_makes_and_changes_no_documents() -> None:
    assert not OF_OBJECT_TOKENS & {Right.CREATE, Right.LIST, Right.CHANGE, Right.INSPECT}
