from sparkmirror.policies.filters import DefaultTopicFilter
from sparkmirror.setup.promoted_topics import UnpromotedTopics
from sparkmirror.storage.promotions import Promotion, Stage


def test_promoted_topics_are_refused_beside_those_that_the_filter_refuses() -> None:
    topics = UnpromotedTopics(DefaultTopicFilter(["orders.*"], ["orders.tmp"]))
    assert topics.should_replicate("orders")
    topics.promoted = {"orders": Promotion(Stage.STOPPING, 0, b"", {})}
    assert not topics.should_replicate("orders")
    assert topics.refused_by("orders") == "sparkmirror promote (applications write it on the target)"
    assert topics.should_replicate("orders.eu")
    assert not topics.should_replicate("orders.tmp")
    assert topics.refused_by("orders.tmp") == "topics.exclude (orders.tmp)"
    assert topics.refused_by("payments") == "topics"
