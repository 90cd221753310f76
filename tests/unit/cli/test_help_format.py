from sparkmirror.cli.help_format import filled

TEXT = """\
Reads both clusters of every flow and
prints what a mirror would do.

examples:
  sparkmirror plan mm2.properties            every flow
                                             of the file
  sparkmirror plan --url http://connect-1    a worker
"""


def test_paragraphs_are_filled_and_two_columns_kept_where_they_fit() -> None:
    assert list(filled(TEXT, 70)) == [
        "Reads both clusters of every flow and prints what a mirror would do.",
        "",
        "examples:",
        "  sparkmirror plan mm2.properties            every flow",
        "                                             of the file",
        "  sparkmirror plan --url http://connect-1    a worker",
    ]


def test_columns_that_do_not_fit_stand_below_each_other() -> None:
    assert list(filled(TEXT, 44)) == [
        "Reads both clusters of every flow and prints",
        "what a mirror would do.",
        "",
        "examples:",
        "  sparkmirror plan mm2.properties",
        "        every flow of the file",
        "  sparkmirror plan --url http://connect-1",
        "        a worker",
    ]


def test_a_long_line_of_one_column_is_continued_below() -> None:
    assert list(filled("  one two three four", 12)) == ["  one two", "        three", "        four"]


def test_a_short_left_column_keeps_its_right_column_beside_it() -> None:
    text = "  sync   write the offsets of the group\n  verify read  them\n"
    assert list(filled(text, 28)) == [
        "  sync         write the",
        "               offsets of",
        "               the group",
        "  verify read  them",
    ]


def test_a_command_is_continued_as_a_shell_reads_it_and_comments_stay_comments() -> None:
    text = "  sparkmirror lag a.properties --topic 'orders of us' -o json  # for programs to read\n"
    assert list(filled(text, 46)) == [
        "  sparkmirror lag a.properties --topic \\",
        "        'orders of us' -o json",
        "        # for programs to read",
    ]
    assert list(filled(text, 24))[-2:] == ["        # for programs", "        # to read"]
