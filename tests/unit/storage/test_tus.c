/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads whose replies bring the next request for the same upload at once, or whose disk is busy.
 * The HTTP server is the test's: what it is given as a reply is kept, and may begin a request.
 */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/fs.h"
#include "storage/storage.h"
#include "storage/volume.h"

struct request {
    enum method method;
    struct message_head head;
    struct message_header headers[3];
    request_body_fn *on_body;
    void *body_data;
    int status;         /* of the reply; 0 = none yet, -1 = it was broken off */
    void (*then)(void); /* called within the reply */
};

static char folder_path[64], seen[80], token_text[4096];
static char public_url[] = "http://files.example";
static struct settings settings = { .common.public_url = public_url, .transfers_max = 8 };
static struct storage storage;
static struct volume volume;
static struct request first, second;

/* ---- the HTTP server ---- */

enum method request_get_method(const struct request *req)
{
    return req->method;
}

const struct message_head *request_get_head(const struct request *req)
{
    return &req->head;
}

const char *request_get_query(const struct request *req, const char *name)
{
    (void)req;
    return strcmp(name, "token") == 0 ? token_text : NULL;
}

const struct url_query *request_get_queries(const struct request *req)
{
    static const struct url_query none;

    (void)req;
    return &none;
}

bool request_is_gone(const struct request *req)
{
    (void)req;
    return false;
}

void request_add_header(struct request *req, const char *name, const char *value)
{
    (void)name, (void)value;
    assert_int_equal(req->status, 0);
}

void request_add_header_int(struct request *req, const char *name, int64_t value)
{
    (void)name, (void)value;
    assert_int_equal(req->status, 0);
}

static void keep_reply(struct request *req, int status)
{
    assert_int_equal(req->status, 0);
    req->status = status;
    if (req->then)
        req->then();
}

void request_reply(struct request *req, int status, const char *content_type, const void *body,
                   size_t len)
{
    (void)content_type, (void)body, (void)len;
    keep_reply(req, status);
}

void request_reply_empty(struct request *req, int status)
{
    keep_reply(req, status);
}

void request_fail(struct request *req, const struct aq_error *err)
{
    (void)err;
    keep_reply(req, 500);
}

void request_abort(struct request *req)
{
    keep_reply(req, -1);
}

void request_read_body(struct request *req, request_body_fn *on_body, void *data)
{
    req->on_body = on_body;
    req->body_data = data;
}

void request_pause_body(struct request *req)
{
    (void)req;
}

void request_resume_body(struct request *req)
{
    (void)req;
}

/* ---- the storage host ---- */

struct volume *storage_find_volume(const struct storage *self, const char *name)
{
    (void)self, (void)name;
    return &volume;
}

void storage_settle(struct storage *self)
{
    (void)self;
}

bool front_is_connected(const struct front *front)
{
    (void)front;
    return false;
}

int front_send(const struct front *front, const struct message *msg, struct aq_error *err)
{
    (void)front, (void)msg;
    return aq_fail(err, ENOTCONN, "there is no manager");
}

void storage_touch(struct volume *self, const struct uuid *folder, const struct uuid *user)
{
    (void)self, (void)folder, (void)user;
}

static void begin(struct request *req, enum method method, const char *offset)
{
    req->method = method;
    req->headers[0] = (struct message_header){ "Tus-Resumable", "1.0.0" };
    req->headers[1] = (struct message_header){ "Content-Type", "application/offset+octet-stream" };
    req->headers[2] = (struct message_header){ "Upload-Offset", offset };
    req->head = (struct message_head){
        .method = method, .content_length = 4, .headers = req->headers, .header_count = 3
    };
    for (size_t i = 0; i < tus_route_count; i++)
        if (tus_routes[i].method == method)
            tus_routes[i].handler(req, &storage);
}

static void begin_second(void)
{
    begin(&second, METHOD_PATCH, "0");
}

static void run(void)
{
    (void)uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}

/* Give the request its body. */
static void give_body(struct request *req)
{
    assert_non_null(req->on_body);
    req->on_body(req, "abcd", 4, 0, req->body_data);
    req->on_body(req, NULL, 0, 0, req->body_data);
    run();
}

static int setup(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct token token = { .direction = TOKEN_UPLOAD,
                           .volume = "local",
                           .path = "file",
                           .folder_id = uuid_random(),
                           .upload_id = uuid_random(),
                           .size = 4,
                           .expires_usec = clock_realtime_usec() + 60 * USEC_PER_SEC };
    struct aq_error err = { 0 };

    (void)state;
    first = second = (struct request){ 0 };
    (void)snprintf(folder_path, sizeof(folder_path), "/tmp/aliquot-tus-XXXXXX");
    assert_non_null(mkdtemp(folder_path));
    (void)snprintf(seen, sizeof(seen), "%s/.seen", folder_path);
    storage = (struct storage){ .loop = uv_default_loop(),
                                .settings = &settings,
                                .usage = usage_table_new() };
    list_init(&storage.uploads);
    list_init(&storage.waiting);
    quota_init(&storage.users, 16, 0);
    quota_init(&storage.folders, 16, 0);
    volume = (struct volume){ .storage = &storage,
                              .dir = { .name = "v", .path = folder_path, .seen = seen } };
    work_lanes_init(volume.lanes, uv_default_loop());
    if (volume_mark(&volume.dir, &err) < 0
        || volume_create_folder(&volume.dir, &token.folder_id, &err) < 0)
        fail_msg("%s", err.text);
    token_write(storage.key, &token, &text);
    assert_true(text.len < sizeof(token_text));
    memcpy(token_text, text.data, text.len + 1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    assert_true(list_is_empty(&storage.uploads));
    assert_true(list_is_empty(&storage.waiting));
    assert_int_equal(storage.transfer_count, 0);
    usage_table_free(storage.usage);
    quota_done(&storage.users);
    quota_done(&storage.folders);
    assert_int_equal(fs_remove_tree(AT_FDCWD, folder_path, NULL), 0);
    return 0;
}

/* ---- the tests ---- */

static void test_one_after_the_other(void **state)
{
    (void)state;
    begin(&first, METHOD_PATCH, "0");
    run();
    give_body(&first);
    assert_int_equal(first.status, 204);
}

/* The reply comes while nothing of the upload is written: who looks for it must not find it. */
static void test_a_refusal_brings_the_next_request(void **state)
{
    (void)state;
    first.then = begin_second;
    begin(&first, METHOD_PATCH, "2");
    run();
    assert_int_equal(first.status, 409);
    assert_int_equal(second.status, 0);
    give_body(&second);
    assert_int_equal(second.status, 204);
}

static void test_a_finished_upload_brings_the_next_request(void **state)
{
    (void)state;
    first.then = begin_second;
    begin(&first, METHOD_PATCH, "0");
    run();
    give_body(&first);
    assert_int_equal(first.status, 204);
    run();
    assert_int_equal(second.status, 409); /* as the upload does not end at 0 any more */
}

static void test_one_that_is_cut_lets_the_next_one_in(void **state)
{
    (void)state;
    begin(&first, METHOD_PATCH, "0");
    run();
    begin_second();
    assert_int_equal(first.status, 0);
    run();
    assert_int_equal(first.status, -1);
    give_body(&second);
    assert_int_equal(second.status, 204);
}

/* The one that is cut ends at once, as its disk takes nothing: the next one is there already. */
static void test_the_disk_is_busy(void **state)
{
    (void)state;
    begin(&first, METHOD_PATCH, "0");
    run();
    volume.lanes[WORK_DATA].waiting_count = WORK_WAITING_MAX;
    begin_second();
    assert_int_equal(first.status, -1);
    assert_int_equal(second.status, 503);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_after_the_other, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_refusal_brings_the_next_request, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_finished_upload_brings_the_next_request, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_one_that_is_cut_lets_the_next_one_in, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_disk_is_busy, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
