"""Expected results of the banking jobs, computed by hand for a few records."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from penstock.jobs.local.banking import enriched, fraud, holders, split, tables, totals, transactions, transfers
from penstock.jobs.local.recording import Record, Recorded
from tests.jobs.local.by_hand import gone, read, rows, said


def _paid(name: str, time: str, amount: str = "20.00", kind: str = "Debit", status: str = "approved", account: str = "A1") -> Recorded:
    return said(account, time, transaction_id=name, account_id=account, amount=amount, type=kind, status=status)


def _account(time: str, owner: str = "C00", limit: str = "100.00", name: str = "A1") -> Recorded:
    return said(name, time, account_id=name, customer_id=owner, product="current", credit_limit=limit)


def _customer(time: str, segment: str = "private", name: str = "C00") -> Recorded:
    return said(name, time, customer_id=name, name="Asha", segment=segment)


def test_a_transaction_that_comes_again_within_ten_minutes_counts_once_and_a_later_one_is_new() -> None:
    recording = read(
        transactions=[_paid("T1", "0:01"), _paid("T1", "0:00"), _paid("T1", "9:59"), _paid("T1", "10:00"), _paid("T2", "3:00")]
    )
    expected = split.expect(recording)
    assert [row["at"][14:19] for row in map(json.loads, sorted(expected.sinks["debits"]))] == ["00:00", "03:00", "10:00"]
    assert not expected.sinks["credits"]
    assert (expected.rows, expected.quarantined, expected.late) == (3, 0, 0)


def test_a_type_other_than_debit_goes_to_the_credits_and_an_invalid_amount_nowhere() -> None:
    expected = split.expect(read(transactions=[_paid("T1", "0:00", kind="Credit"), _paid("T2", "0:01", amount="n/a")]))
    assert (expected.rows, expected.quarantined) == (1, 1)
    assert [row["transaction_id"] for row in rows(expected.sinks["credits"])] == ["T1"]


def test_a_transaction_has_the_account_that_was_valid_at_its_time() -> None:
    accounts = [_account("10:00"), _account("20:00", owner="C79"), gone("A1", "30:00")]
    paid = [_paid(f"T{minute}", f"{minute}:00") for minute in (9, 10, 19, 20, 30)]
    expected = enriched.expect(read(transactions=paid, accounts=accounts))
    assert [(row["transaction_id"], row["customer_id"], row["name"] is not None) for row in rows(expected.exact)] == [
        ("T9", None, False),
        ("T10", "C00", True),
        ("T19", "C00", True),
        # The database does not have this customer.
        ("T20", "C79", False),
        ("T30", None, False),
    ]


@pytest.mark.parametrize(("amount", "risk"), [("10.00", "low"), ("10.01", "medium"), ("50.00", "medium"), ("50.01", "high")])
def test_the_risk_is_by_the_share_of_the_limit(amount: str, risk: str) -> None:
    private = next(name for name, (_, segment, _) in tables.known_customers().items() if segment == "private")
    business = next(name for name, (_, segment, _) in tables.known_customers().items() if segment == "business")
    for owner, limit in ((private, "100.00"), (business, "50.00")):
        expected = enriched.expect(read(transactions=[_paid("T1", "1:00", amount)], accounts=[_account("0:00", owner, limit)]))
        assert [row["risk"] for row in rows(expected.exact)] == [risk]


def test_only_open_accounts_of_existing_customers_have_holders() -> None:
    customers = [_customer("0:00"), _customer("5:00", "business"), _customer("0:00", name="C01"), gone("C01", "9:00")]
    accounts = [_account("1:00"), _account("1:00", name="A2"), gone("A2", "2:00"), _account("1:00", "C01", name="A3")]
    moved = [_account("1:00", "C01", name="A4"), _account("3:00", name="A4")]
    expected = holders.expect(read(customers=customers, accounts=[*accounts, *moved]))
    assert [(row["account_id"], row["customer_id"], row["segment"]) for row in rows(expected.exact)] == [
        ("A1", "C00", "business"),
        ("A4", "C00", "business"),
    ]


def test_totals_grow_by_ten_minutes_until_the_hour_is_over() -> None:
    paid = [_paid("T1", "5:00", "1.10"), _paid("T2", "45:00", "2.20"), _paid("T3", "46:00", "5.00", status="declined")]
    expected = rows(totals.expect(read(transactions=[*paid, _paid("T4", "60:00", "7.00")])).exact)
    first, second = ([row for row in expected if row["window_start"] == f"2025-04-05T{hour}:00:00.000Z"] for hour in (12, 13))
    assert sorted((str(row["window_end"])[14:16], row["transactions"], row["total"]) for row in first) == [
        ("00", 2, "3.30"),
        *((end, 1, "1.10") for end in ("10", "20", "30", "40")),
        ("50", 2, "3.30"),
    ]
    assert [(row["transactions"], row["total"]) for row in second] == [(1, "7.00")] * 6


def test_both_sides_of_a_transfer_match_within_five_minutes_and_are_emitted_separately_beyond() -> None:
    def side(name: str, reference: str, time: str, amount: str = "1.00") -> Recorded:
        return said(reference, time, reference=reference, **{f"{name}_id": f"{name[0]}{reference}"}, amount=amount)

    debits = [side("debit", "1", "5:00"), side("debit", "2", "5:00"), side("debit", "3", "5:00"), side("debit", "4", "5:00")]
    credited = [
        side("credit", "1", "10:00"),
        side("credit", "2", "10:01"),
        side("credit", "3", "0:00", "0.75"),
        side("credit", "5", "0:00"),
    ]
    expected = transfers.expect(read(settlement__debits=debits, settlement__credits=credited))
    assert Counter((row["reference"], row["state"]) for row in rows(expected.exact)) == Counter(
        [("1", "settled"), ("2", "debit only"), ("2", "credit only"), ("3", "differs"), ("4", "debit only"), ("5", "credit only")]
    )


def _declined(*times: str, account: str = "A1") -> list[Recorded]:
    return [_paid(f"D{time}", time, status="declined", account=account) for time in times]


@pytest.mark.parametrize(
    ("declined", "approved", "amount", "alerts"),
    [
        (("0:00", "1:00", "2:00"), "10:00", "500.01", 1),
        (("0:00", "1:00", "2:00"), "10:01", "500.01", 0),
        (("0:00", "1:00", "2:00"), "3:00", "500.00", 0),
        (("0:00", "1:00"), "3:00", "900.00", 0),
        (("0:00", "1:00", "2:00", "9:00"), "11:00", "900.00", 1),
    ],
)
def test_an_alert_takes_three_that_were_declined_and_a_large_one_within_ten_minutes(
    declined: tuple[str, ...], approved: str, amount: str, alerts: int
) -> None:
    expected = fraud.expect(read(transactions=[*_declined(*declined), _paid("T1", approved, amount)]))
    assert expected.rows == alerts
    if alerts:
        assert rows(expected.exact)[0]["declined"] == [f"D{time}" for time in declined[-3:]]


def test_what_has_led_to_an_alert_leads_to_no_other() -> None:
    paid = [*_declined("0:00", "1:00", "2:00"), _paid("T1", "3:00", "900.00"), _paid("T2", "4:00", "900.00")]
    assert fraud.expect(read(transactions=paid)).rows == 1


@pytest.mark.parametrize(
    ("topic", "partitions", "gone_for_ever"),
    [
        (transactions.transactions, 5, False),
        (tables.customers, 4, True),
        (tables.accounts, 4, True),
        (transfers.debits, 4, False),
        (transfers.credits_of_transfers, 4, False),
    ],
)
def test_each_topic_has_what_goes_wrong_in_one_and_ends_with_its_flush_records(
    topic: Callable[[int], Iterator[Record]], partitions: int, gone_for_ever: bool
) -> None:
    records = list(topic(partitions))
    assert [record.partition for record in records if record.flush] == list(range(partitions))
    assert all(record.flush for record in records[-partitions:])
    # A compacted topic accepts no record without a key, and a record a day later than the others would roll its segments.
    assert all(record.key and record.timestamp_ms for record in records)
    assert any(record.value is None for record in records) == gone_for_ever
    assert len(set(map(id, records))) < len(records), "none comes twice"


def test_the_seeds_of_the_database_hold_names_with_quotes() -> None:
    statements = list(tables.core_banking())
    assert len(statements) == tables.CUSTOMERS - 1
    assert any("O''Brien" in statement for statement in statements)
