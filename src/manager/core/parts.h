/* parts.h - what the files of this folder do for each other */
#ifndef AQ_MANAGER_CORE_PARTS_H
#define AQ_MANAGER_CORE_PARTS_H

#include "manager/core/state.h"

/* ---- core.c ---- */

void core_schedule_turn(struct core *core);
/* Memory is short after something became durable: memory and ledger would
 * differ. End the process; a restart loads everything afresh.
 */
void core_die(const char *what) __attribute__((noreturn));

/* Call 'done' in the next turn with a copy of 'err'. */
void core_defer(struct core *core, core_done_fn done, void *data, int r,
                const struct aq_error *err);

/* ---- live.c: sessions in memory ---- */

struct live *live_find(const struct core *core, const struct uuid *id);
/* Look at the session in this turn. */
void live_touch(struct core *core, struct live *l);
/* What it asks for as schedulers are told, without accounts and owner, in core->scratch; of its
 * kernels those that hold something ('holding'), or all. -ENOMEM.
 */
int live_describe(struct core *core, struct live *l, bool holding, struct sched_session *ret);
/* Look again not later than at 'usec' (monotonic). */
void live_wake_at(struct core *core, struct live *l, int64_t usec);
void live_pop_due(struct core *core, int64_t now);
void live_unschedule(struct core *core, struct live *l);
/* One that nobody finds, of the contents of 's'; NULL if memory is short. */
struct live *live_new(struct core *core, struct session *s);
/* Take the contents of 's' into memory; NULL if memory is short. */
struct live *live_add(struct core *core, struct session *s);
/* Out of every list; freed in the next turn. */
void live_bury(struct core *core, struct live *l);
void live_free(struct live *l);
int live_rename(struct core *core, struct live *l, const char *name);
/* A kernel begins or ends to hold its agent's resources; the wall clock's time, 0 = long ago. */
void live_hold(struct core *core, struct live *l, size_t rank, int64_t at_usec);
void live_release(struct core *core, struct live *l, size_t rank, int64_t at_usec);
/* Forget what was said and sent about a kernel. */
void live_forget_facts(struct kernel_live *k);

/* ---- age.c ---- */

/* Before anything is loaded: see how the clocks went since the last start,
 * which 'path' tells, and leave there what the next one needs.
 */
int age_begin(struct core *core, const char *path, struct aq_error *err);
/* The monotonic time at which a status was applied that is dated by the wall clock. */
int64_t age_since(const struct core *core, int64_t changed_usec);
/* When 'after_usec' in this state are over (monotonic). What became due while
 * no manager was there waits a minute more: agents have to be heard first.
 */
int64_t age_due(const struct core *core, const struct live *l, int64_t after_usec);

/* ---- queue.c ---- */

void queue_add(struct core *core, struct live *l);
void queue_remove(struct core *core, struct live *l);
void queue_park(struct core *core, struct live *l, enum sched_verdict verdict,
                struct account *account);
/* Back among those to look at. */
void queue_unpark(struct core *core, struct live *l);
/* Room may have appeared in the group. */
void queue_room(struct core *core, struct rgroup *g);
/* An agent may have. */
void queue_agent(struct core *core, struct rgroup *g);
/* An account holds less, or its limits have changed. */
void queue_account(struct core *core, struct account *account);
struct account *account_get(struct core *core, enum sched_account_kind kind, const char *name);
/* Its limits now; false if it has none. */
bool account_limits(const struct core *core, const struct account *account,
                    struct sched_account *ret);
int account_usage(struct account *account, const struct slots **ret);
void account_free(struct account *account);
/* The group of that name; made if it is only named so far. Cannot fail. */
struct rgroup *rgroup_get(struct core *core, const char *name);
void rgroup_free(struct rgroup *g);
struct rgroup *rgroup_find(const struct core *core, const char *name);

/* ---- wishes.c ---- */

struct jsonw;

/* Of a request; 'resource_group' NULL = that of the agents. -EINVAL names the member. */
int wishes_check(const struct core *core, const struct session_wishes *wishes,
                 const char *resource_group, int max_priority, struct aq_error *err);
/* The group of the agents that are wished for; NULL = none is. */
const char *wishes_resource_group(const struct core *core, const struct session_wishes *wishes);
/* The member of a spec that keeps them, if there are any. */
void wishes_write(const struct session_wishes *wishes, struct jsonw *w);
bool wishes_are_in(const char *spec);
/* Out of the spec into 'l'. 0 or -ENOMEM. */
int wishes_read(const struct json_t *spec, struct live *l);
void wishes_free(struct live *l);
/* Into what the scheduler is told; texts live in core.scratch. 0 or -ENOMEM. */
int wishes_describe(struct core *core, const struct live *l, struct sched_session *ret);

/* ---- preempt.c ---- */

/* Of the member "preemption" of scheduler_opts; NULL = none. -EINVAL names the key. */
int preempt_read(struct json_t *from, struct core_scheduling *ret, struct aq_error *err);
/* What becomes of 'l' if it is displaced. */
enum core_fate preempt_fate(const struct live *l);
/* Into what the scheduler is told, after wishes_describe(). 0 or -ENOMEM. */
int preempt_describe(struct core *core, const struct live *l, struct sched_session *ret);
/* Somebody may have to make way. */
bool preempt_is_on(const struct sched_preemption *p);
/* For status_data of whoever makes way; NULL if memory is short. */
char *preempt_data(const struct live *l);
/* It is about to give back what it holds. */
bool preempt_is_leaving(const struct session *s);
/* A pass of 'g' found 'l' a place that others have to leave. */
void preempt_begin(struct rgroup *g, struct core *core, struct live *l,
                   const struct sched_outcome *out);

/* ---- places.c ---- */

#define PLACES_MOVED "moved_to"
#define PLACES_PROMISED "places"

/* These are set aside for it, one per kernel (copied); NULL = none. */
void places_set(struct live *l, const char *const *agents);
/* What its row says. */
void places_load(struct live *l);
/* As a member of an object, if there are any. */
void places_write(const struct live *l, const char *key, struct jsonw *w);
/* Monotonic: it waits so long for an agent of them, which is not there yet; 0 = it does not. */
int64_t places_due(const struct core *core, const struct live *l);

/* ---- ends.c ---- */

/* A change of the session with what belongs to an end; 'data' (JSON or NULL) is copied.
 * NULL if memory is short.
 */
struct event *end_propose(struct core *core, struct live *l, enum session_status to,
                          const char *reason, enum session_result result, const char *data);
/* Durably forced, if that was asked for. */
void end_propose_forced(struct core *core, struct live *l);
/* A batch program that was not allowed to end by itself has failed. */
enum session_result end_result(const struct live *l);
/* From any state with kernels to TERMINATING. */
void end_begin(struct core *core, struct live *l, const char *reason, enum session_result result,
               const char *data);
/* A kernel that has ended cannot start anew: then the session cannot either. */
bool end_may_reschedule(const struct live *l);
/* Those that its kernels are on. */
bool end_agents_are_connected(const struct core *core, const struct live *l);

/* ---- retry.c ---- */

void retry_defaults(struct core_scheduling *ret);
/* Of the member "handler_options" of scheduler_opts; NULL = none. -EINVAL names the key. */
int retry_read(struct json_t *from, struct core_scheduling *ret, struct aq_error *err);
/* An agent could not start a kernel: again, elsewhere if possible, or the end. */
void retry_failed(struct core *core, struct live *l, size_t rank);
/* The same of a start that takes longer than its group allows: true if that was proposed. */
bool retry_expired(struct core *core, struct live *l, int64_t now);
/* How long its state may last, if 'deadline_usec' is what it may in general (0 = for ever): a start
 * at least as long as its group lets one take.
 */
int64_t retry_deadline(const struct live *l, int64_t deadline_usec);
/* An agent fetches an image for a kernel, or does so no longer. */
void retry_take_pull(struct core *core, struct live *l, const struct uuid *kernel_id, bool is_over);
/* It waits in vain for too long and holds up others: true if it was proposed to lower it. */
bool retry_deprioritize(struct core *core, struct live *l);
/* It has waited for as long as it may. */
void retry_note_timeout(struct core *core, struct live *l);
/* DEPRIORITIZING: lower it, back to the queue. */
void retry_lower(struct core *core, struct live *l);
/* Something follows from how often it finds no room. */
bool retry_counts_waits(const struct live *l);

/* ---- kept.c ---- */

/* Tell the group's scheduler what has changed since it was told last. -EAGAIN: it has to be
 * built anew, which waits until placements that are under way are known to hold.
 */
int kept_sync(struct core *core, struct rgroup *g) AQ_MUST_CHECK;
/* It is to be built anew before its next pass. */
void kept_spoil(struct rgroup *g);
void kept_done(struct rgroup *g);
/* A session waits, does so no longer, or holds something else. */
void kept_session(struct live *l);
/* It goes nowhere any more, or has arrived: its place elsewhere is for others. */
void kept_give_up_places(struct live *l);
/* It leaves memory. */
void kept_forget(struct live *l);
/* A kernel begins or ends to hold something of 'a'. */
void kept_held(struct core *core, struct live *l, struct agent_live *a);
void kept_released(struct core *core, struct live *l, struct agent_live *a);
/* It will give back what it holds before long. */
void kept_leaves(struct live *l);
/* An agent is ready, is so no longer, or offers something else. */
void kept_agent(struct core *core, struct agent_live *a);
void kept_agent_leaves(struct agent_live *a);
/* The account's limits have changed. */
void kept_account(struct account *account);
/* The plan of the group's queue as if 'l', which is not in it, came last of its
 * priority; l->handle tells it. Lives in core->scratch. The count, -EAGAIN, -ENOMEM.
 */
int kept_guess(struct core *core, struct live *l, size_t max, struct sched_planned **ret);
/* Passes that looked at the session in vain. */
uint32_t live_tries(const struct live *l);

/* ---- explain.c, outlook.c ---- */

/* As core_explain(), without the outlook: what may be kept with the session. */
int explain(struct core *core, struct live *l, struct strbuf *text, struct strbuf *json,
            struct aq_error *err);
/* All that core_explain() says, about a session that is not made. */
int explain_guess(struct core *core, struct live *l, struct strbuf *text, struct strbuf *json,
                  struct aq_error *err);
/* The outlook of one that is not in the queue. */
int outlook_guess(struct core *core, struct live *l, struct core_outlook *ret);
/* Sentences for a person. */
void outlook_say(const struct rgroup *g, const struct core_outlook *o, struct strbuf *text);
void outlook_done(struct rgroup *g);

/* ---- attempts.c ---- */

/* The session waits for another reason than 'l->explained'; 'detail' is JSON. */
void attempts_explained(struct core *core, struct live *l, const char *detail);
/* It is being placed; 'choices' is JSON or NULL. */
void attempts_placed(struct core *core, struct live *l, const char *choices);
/* A step of its start has failed; 'error' is JSON {"error": ...} or NULL. */
void attempts_failed(struct core *core, struct live *l, const struct retry_record *record,
                     enum retry_result result, const char *error);
/* It waits on: write now and then how often it was looked at. */
void attempts_keep(struct core *core, struct live *l, int64_t now);
/* Prune by age and number. */
void attempts_tick(struct core *core, int64_t now);

/* ---- propose.c ---- */

/* An event of 'l' in the batch of this turn; l becomes busy. NULL if memory
 * is short: then the whole batch will be given up and tried again.
 */
struct event *propose(struct core *core, struct live *l, enum event_kind kind);
/* The same of its status. */
struct event *propose_session(struct core *core, struct live *l, enum session_status to,
                              const char *reason);
struct event *propose_kernel(struct core *core, struct live *l, size_t rank,
                             enum kernel_status to, const char *reason);
/* The open batch has placements of a pass of 'g'. */
void propose_pass(struct core *core, struct rgroup *g);
/* Hand the open batch to the store. */
void propose_flush(struct core *core);
/* A batch of a command; applied, then 'done' is called. Takes the batch. */
void propose_command(struct core *core, struct event_batch *batch, core_done_fn done, void *data);

/* ---- apply.c ---- */

/* The one function that changes durable memory. */
void core_apply(struct core *core, struct event *e);
void apply_people(struct core *core, struct event *e);
void apply_agent(struct core *core, struct event *e);

/* ---- the others ---- */

void step(struct core *core, struct live *l);
/* pending.c: PENDING, or on the way to it */
void step_pending(struct core *core, struct live *l, int64_t now);
void schedule(struct core *core);

/* The words of an agent that could not start a kernel, for status_data; NULL if
 * memory is short.
 */
char *refusal_json(const char *agent_id, const struct msg_kernel_status *m);
/* Add what an agent said, if 'status_data' holds such, to the scheduler's
 * explanation. 'text', 'json' may be NULL. Returns 0 or -ENOMEM.
 */
int refusal_keep(const char *status_data, struct strbuf *text, struct strbuf *json) AQ_MUST_CHECK;

void waiters_check(struct core *core, struct live *l);
void waiters_fail(struct core *core, struct live *l, int r, const struct aq_error *err);

void bus_publish(struct core *core, const struct core_event *event);
void bus_free(struct core *core);

void dependency_watch(struct core *core, struct live *l);
void dependency_ended(struct core *core, struct live *l);
void dependency_forget(struct core *core, struct live *l);
void dependency_free(struct core *core);

/* Tell the kernel's agent; nothing if it is not connected or not synced. */
void order_create(struct core *core, struct live *l, size_t rank);
void order_restart(struct core *core, struct live *l, size_t rank);
void order_destroy(struct core *core, struct live *l, size_t rank, int64_t grace_usec,
                   const char *reason);
void order_forget(struct core *core, const char *agent_id, const struct uuid *kernel_id,
                  int64_t attempt);
/* End a kernel that is not ours. */
void order_stranger_end(struct core *core, const char *agent_id, const struct uuid *kernel_id,
                        int64_t attempt);
void order_drain(struct core *core, const char *agent_id, bool on);

extern const struct link_server_ops agent_link_ops;
struct agent_live *agent_find(const struct core *core, const char *id);
struct agent_live *agent_add(struct core *core, const char *id);
void agent_drop(struct core *core, struct agent_live *a);
int agent_free_slots(struct agent_live *a, const struct slots **ret);
/* Its accelerators that can be used, for the scheduler; good until the loop runs again. -ENOMEM. */
struct agent_cards;
int agent_find_cards(const struct core *core, struct agent_live *a, const struct sched_device **ret,
                     size_t *ret_count);
void agent_cards_free(struct agent_cards *cards);
/* As far as they have been looked at. */
bool agent_has_cards(const struct agent_live *a);
/* The same as if nobody held any of them, except under another slot's name;
 * lives in 'arena'.
 */
int agent_copy_cards(const struct core *core, struct agent_live *a, struct arena *arena,
                     struct sched_device **ret, size_t *ret_count);
/* The parts of the agent's devices, as agent_find_cards() lists them, that a kernel is known to
 * hold; none if that is not known. They live in 'arena'. 0 or -ENOMEM.
 */
int agent_find_parts(const struct core *core, struct agent_live *a, const struct kernel_live *f,
                     struct arena *arena, const struct sched_part **ret, size_t *ret_count);
/* JSON of the devices that the kernel holds, NULL = it has not said. */
const char *kernel_live_alloc(const struct kernel_live *f);
/* The same, added to 'ret'. 0 or -ENOMEM. */
int kernel_live_held(const struct core *core, const struct kernel_live *f, struct core_held *ret);
void agents_tick(struct core *core, int64_t now);
/* Its kernels are given up: it was removed, or is lost for longer than the
 * grace and the policy of its group is not to wait; 'forced': lost at all.
 */
bool agent_is_given_up(const struct core *core, const char *id, bool forced);
bool agent_is_ready(const struct agent_live *a);
/* Look at the sessions of all its kernels again. */
void agent_touch_kernels(struct core *core, struct agent_live *a);
/* Equal in all that is stored. */
bool agent_is_same(const struct agent *a, const struct agent *b);
/* Refuses an agent whose greeting cannot be used. */
int offer_take(struct core *core, struct agent_live *a, const struct msg_hello *hello,
               struct aq_error *err);
void offer_take_news(struct core *core, struct agent_live *a, const struct msg_heartbeat *m);
/* Bring the row up to date if it is not. */
void offer_save(struct core *core, struct agent_live *a);
void drains_finish(struct core *core, struct list *drains, int r);
void join_request(void *data, struct link_join *join, const struct msg_join *msg);

/* ---- resize.c ---- */

static inline bool session_may_resize(enum session_status s)
{
    return s == SESSION_RUNNING || s == SESSION_RUNNING_DEGRADED;
}

/* What a kernel holds and could hold, as its agent says; or why not what it was told to. */
void resize_take(struct core *core, struct agent_live *a, struct live *l, size_t rank,
                 const struct msg_kernel_status *m);
/* Of a session that runs: true if something was proposed. */
bool resize_step(struct core *core, struct live *l, int64_t now);
/* Other amounts of a kernel are durable, and in memory. */
void resize_applied(struct core *core, struct live *l, size_t rank);
/* It comes to nothing, unless it was decided: who waits hears so. */
void resize_stop(struct core *core, struct live *l, int r, const struct aq_error *err);
/* The agent's connection has ended. */
void resize_lost(struct core *core, struct agent_live *a);

/* An agent says how programs of a kernel misuse GPUs; NULL = not at all. */

void misuse_take(struct core *core, const struct agent_live *a, struct live *l, size_t rank,
                 const char *text);
/* All of that for status_data; NULL = there is none, or memory is short. */
char *misuse_json(const struct live *l);

void images_take_status(struct core *core, const struct agent_live *a,
                        const struct msg_image_status *msg);
void images_take_list(struct core *core, struct agent_live *a, const struct msg_image_list *msg);
/* Its connection has ended. */
void images_fail_jobs(struct core *core, const struct agent_live *a);
void images_free_jobs(struct core *core);

/* ---- statistics.c ---- */

void statistics_take(struct core *core, struct agent_live *a, const struct msg_statistics *m);
/* What clients see as last_stat; NULL if nothing was measured, or memory is short. */
char *statistics_text(const struct measured *m);
void kernel_measured_free(struct measured *m);
void agent_measured_free(struct agent_measured *m);

/* ---- series.c ---- */

/* Sums of kernels that live on, from before this process. */
int series_restore(struct core *core, struct aq_error *err);
/* Each second. */
void series_tick(struct core *core);
/* It ends: what was gathered becomes its last row. */
void series_end_kernel(struct core *core, const struct kernel *k, struct measured *m);
/* Queue all that was gathered; then the store is flushed. */
void series_stop(struct core *core);
void series_free(struct core *core);

/* Resource groups that were found allowed: read them again. */
void access_forget(struct core *core);

#endif
