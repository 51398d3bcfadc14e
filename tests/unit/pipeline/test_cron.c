/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules: what is refused, and when others are due, where the clocks change too. */
#include "testing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "pipeline/cron.h"

static int64_t at(const char *text)
{
    int64_t usec;

    assert_int_equal(clock_parse_date(text, &usec), 0);
    return usec / USEC_PER_SEC;
}

static void mistakes_are_refused_with_column_and_remedy(void **state)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {
        { "", "column 1: the minute is missing" },
        { "30 2 * *", "column 9: the day of week is missing; a schedule has five fields" },
        { "30 2 * * * true", "column 12: a schedule has five fields; put the command" },
        { "60 * * * *", "column 1: minute must be 0 to 59" },
        { "0 24 * * *", "column 3: hour must be 0 to 23" },
        { "0 0 0 * *", "column 5: day of month must be 1 to 31" },
        { "0 0 * jna *", "column 7: month must be 1 to 12 or jan to dec" },
        { "0 0 * * 8", "column 9: day of week must be 0 to 7 or sun to sat" },
        { "0 0 * * monday", "column 9" },
        { "0 22-2 * * *", "column 3: range 22-2 is empty; write it as 22-23,0-2" },
        { "0 0 * * fri-mon", "column 9: range 5-1 is empty" },
        { "5/15 * * * *", "column 2: a step follows '*' or a range, such as 5-59/15" },
        { "*/0 * * * *", "column 3: step must be 1 to 59" },
        { "*/60 * * * *", "column 3" },
        { "*/ * * * *", "column 3" },
        { "1, * * * *", "column 3" },
        { "1;2 * * * *", "column 2: unexpected ';' in the minute" },
        { "100 * * * *", "column 1" },
        { "@reboot", "column 1: expected five fields, or @hourly" },
        { "0 0 30 2 *", "never comes" },
        { "0 0 31 4,6,9,11 *", "never comes" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        struct cron cron;
        struct aq_error err = { 0 };

        if (cron_parse(cases[i].text, &cron, &err) != -EINVAL)
            fail_msg("accepted '%s'", cases[i].text);
        if (!strstr(err.text, cases[i].expected))
            fail_msg("expected '%s' in: %s", cases[i].expected, err.text);
    }
}

/* The due times after 'after', in UTC. */
struct vector {
    const char *cron, *zone, *after;
    const char *due[6];
};

static void check_vector(const struct vector *v)
{
    AQ_CLEANUP(time_zone_freep) struct time_zone *zone = NULL;
    struct aq_error err = { 0 };
    struct cron cron;
    int64_t from = at(v->after), now = from;

    if (cron_parse(v->cron, &cron, &err) < 0 || time_zone_open(v->zone, &zone, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < AQ_COUNT(v->due) && v->due[i]; i++) {
        char found[CLOCK_ISO_MAX];

        now = cron_next(&cron, zone, now);
        if (now != at(v->due[i]))
            fail_msg("'%s' in %s: %s, not %s", v->cron, v->zone,
                     clock_format_iso(now * USEC_PER_SEC, found), v->due[i]);
        assert_int_equal(cron_last(&cron, zone, from, now), now);
        assert_int_equal(cron_last(&cron, zone, from, cron_next(&cron, zone, now) - 1), now);
    }
}

static void schedules_are_due_at_these_times(void **state)
{
    static const struct vector vectors[] = {
        { "30 2 * * 1-5",
          "UTC",
          "2026-11-27 02:30",
          { "2026-11-30 02:30", "2026-12-01 02:30" } }, /* a Friday */
        { "@hourly",
          "Asia/Kolkata",
          "2026-11-30 00:00",
          { "2026-11-30 00:30", "2026-11-30 01:30" } },
        { "0 9 * * *", "Asia/Kolkata", "2026-11-30 00:00", { "2026-11-30 03:30" } },
        { "@weekly", "UTC", "2026-11-30 00:00", { "2026-12-06 00:00", "2026-12-13 00:00" } },
        { "@monthly", "UTC", "2026-11-30 00:00", { "2026-12-01 00:00", "2027-01-01 00:00" } },
        { "0 0 29 2 *", "UTC", "2096-03-01 00:00", { "2104-02-29 00:00" } },
        { "*/20 8-9 * jan,JUL sun",
          "UTC",
          "2026-11-30 00:00",
          { "2027-01-03 08:00", "2027-01-03 08:20", "2027-01-03 08:40", "2027-01-03 09:00" } },
        { "0 0 * * fri-sun",
          "UTC",
          "2026-11-30 00:00",
          { "2026-12-04 00:00", "2026-12-05 00:00", "2026-12-06 00:00", "2026-12-11 00:00" } },
        /* either day, unless one of the fields begins with a star */
        { "0 0 13 * 5",
          "UTC",
          "2026-11-30 00:00",
          { "2026-12-04 00:00", "2026-12-11 00:00", "2026-12-13 00:00", "2026-12-18 00:00" } },
        { "0 0 13 * */5", "UTC", "2026-11-30 00:00", { "2026-12-13 00:00", "2027-06-13 00:00" } },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(vectors); i++)
        check_vector(&vectors[i]);
}

static void what_the_clock_skips_is_due_after_the_gap(void **state)
{
    static const struct vector vectors[] = {
        { "30 2 * * *",
          "Europe/Berlin",
          "2026-03-28 12:00",
          { "2026-03-29 01:00", "2026-03-30 00:30" } },
        { "*/15 2 * * *",
          "Europe/Berlin",
          "2026-03-28 12:00",
          { "2026-03-29 01:00", "2026-03-30 00:00", "2026-03-30 00:15" } },
        { "0 2,3 * * *",
          "Europe/Berlin",
          "2026-03-28 12:00",
          { "2026-03-29 01:00", "2026-03-30 00:00", "2026-03-30 01:00" } },
        { "30 2 * * *",
          "America/New_York",
          "2026-03-07 12:00",
          { "2026-03-08 07:00", "2026-03-09 06:30" } },
        { "15 2 * * *",
          "Australia/Lord_Howe",
          "2026-10-03 12:00",
          { "2026-10-03 15:30", "2026-10-04 15:15" } },
        { "30 2 * * *",
          "Pacific/Apia",
          "2011-12-29 13:00", /* 30 December was left out */
          { "2011-12-30 10:00", "2011-12-30 12:30" } },
        { "30 2 30 12 *",
          "Pacific/Apia",
          "2011-12-29 13:00",
          { "2011-12-30 10:00", "2012-12-29 12:30" } },
        /* each hour that passes */
        { "30 * * * *",
          "Europe/Berlin",
          "2026-03-29 00:00",
          { "2026-03-29 00:30", "2026-03-29 01:30" } },
        { "15 * * * *",
          "Australia/Lord_Howe",
          "2026-10-03 14:00",
          { "2026-10-03 14:45", "2026-10-03 16:15" } },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(vectors); i++)
        check_vector(&vectors[i]);
}

static void what_the_clock_shows_twice_is_due_once(void **state)
{
    static const struct vector vectors[] = {
        { "30 2 * * *",
          "Europe/Berlin",
          "2026-10-24 12:00",
          { "2026-10-25 00:30", "2026-10-26 01:30" } },
        { "30 1 * * *",
          "America/New_York",
          "2026-10-31 12:00",
          { "2026-11-01 05:30", "2026-11-02 06:30" } },
        { "*/20 1-2 * * *",
          "Europe/Berlin",
          "2026-10-24 23:40",
          { "2026-10-25 00:00", "2026-10-25 00:20", "2026-10-25 00:40", "2026-10-26 00:00" } },
        { "45 1 * * *",
          "Australia/Lord_Howe",
          "2026-04-04 00:00",
          { "2026-04-04 14:45", "2026-04-05 15:15" } },
        /* each hour that passes */
        { "30 * * * *",
          "Europe/Berlin",
          "2026-10-25 00:00",
          { "2026-10-25 00:30", "2026-10-25 01:30", "2026-10-25 02:30" } },
        { "45 * * * *",
          "Australia/Lord_Howe",
          "2026-04-04 14:00",
          { "2026-04-04 14:45", "2026-04-04 15:15", "2026-04-04 16:15" } },
        { "* * * * *",
          "Europe/Berlin",
          "2026-10-25 00:59",
          { "2026-10-25 01:00", "2026-10-25 01:01" } },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(vectors); i++)
        check_vector(&vectors[i]);
}

static void the_last_due_time_of_a_long_absence(void **state)
{
    AQ_CLEANUP(time_zone_freep) struct time_zone *zone = NULL;
    struct cron cron;

    (void)state;
    assert_int_equal(time_zone_open("Europe/Berlin", &zone, NULL), 0);
    assert_int_equal(cron_parse("30 2 * * *", &cron, NULL), 0);
    assert_int_equal(cron_last(&cron, zone, at("2020-01-01"), at("2026-11-30 00:00")),
                     at("2026-11-29 01:30"));
    assert_int_equal(cron_last(&cron, zone, at("2026-11-29 01:30"), at("2026-11-30 01:29")),
                     CRON_NEVER);
    assert_int_equal(cron_last(&cron, zone, at("2026-11-29 01:29:59"), at("2026-11-29 01:30")),
                     at("2026-11-29 01:30"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_are_refused_with_column_and_remedy),
        cmocka_unit_test(schedules_are_due_at_these_times),
        cmocka_unit_test(what_the_clock_skips_is_due_after_the_gap),
        cmocka_unit_test(what_the_clock_shows_twice_is_due_once),
        cmocka_unit_test(the_last_due_time_of_a_long_absence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
