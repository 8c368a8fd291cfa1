"""A workflow that is written in Python. `python examples/builder.py` prints its JSON, `examples/builder.json`."""

from __future__ import annotations

from astraflow.builder import Flow, Retry, case, core, expr

workflow = Flow("Order", description="Sum an order, choose how it is sent, and write the receipt.")
country = workflow.input("country", {"type": "string"}, default="FR", description="Where it goes")

cart = core.echo(
    workflow, "Cart", value=[{"name": "tea", "price": 4.5}, {"name": "pot", "price": 21}]
)
total = core.python(
    workflow,
    "Sum",
    code="def main(items):\n    return sum(item['price'] for item in items)\n",
    inputs={"items": cart["value"]},
).set(retry=Retry(max_attempts=3), timeout_seconds=30)

how = core.switch(
    workflow,
    "How?",
    value=total["result"],
    cases=[case("abroad", when=country != "FR"), case("free", when=total.results.result >= 25)],
    default="paid",
)
abroad = core.echo(workflow, "By plane", value=expr("12 + nodes.Sum.results.result"))
free = core.echo(workflow, "Free of charge", value=total.results.result)
paid = core.echo(workflow, "By post", value=total.results.result + 5)
how["abroad"] >> abroad
how["free"] >> free
how["paid"] >> paid

receipt = core.template(
    workflow,
    "Receipt",
    template="{{count}} things to {{country}}: {{total}}",
    values={
        "count": expr("len(nodes.Cart.results.value)"),
        "country": country,
        "total": expr(
            "default(nodes['By plane'].results.value,"
            " default(nodes['Free of charge'].results.value, nodes['By post'].results.value))"
        ),
    },
).set(join="any")
[abroad, free, paid] >> receipt
workflow.output("receipt", receipt["text"])

if __name__ == "__main__":
    print(workflow.to_json().decode(), end="")
