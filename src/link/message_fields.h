/* SPDX-License-Identifier: Apache-2.0 */
/* message_fields.h - which JSON key is which member, for the encoder and decoder of messages */
#ifndef AQ_LINK_MESSAGE_FIELDS_H
#define AQ_LINK_MESSAGE_FIELDS_H

#include "link/message.h"
#include "model/wire_fields.h"

/* Rows of a table of members. */
/* clang-format off */
#define MEMBER(type, member, kind) { #member, kind, offsetof(struct type, member), 0 }
#define NEEDED(type, member, kind) { #member, kind, offsetof(struct type, member), WIRE_REQUIRED }
#define LIST(type, member, shape)                                                                  \
    { #member, WIRE_LIST, offsetof(struct type, member), .of = &(shape) }
#define VALUES(type, member)                                                                       \
    { #member, WIRE_OWN, offsetof(struct type, member), .own = &message_values }
/* clang-format on */

struct message_shape {
    const char *name;
    bool reliable;
    const struct wire_field *fields; /* NULL: MSG_UNKNOWN */
    bool is_order;                   /* has message_stamp_fields beside them */
};

/* Of an enum msg_kernel_state; of a struct msg_value *, followed by its size_t count. */
extern const struct wire_own message_kernel_state, message_values;

extern const struct wire_field message_stamp_fields[]; /* of struct msg_stamp */
/* The members of each type. */
/* message_app.c */
extern const struct wire_field message_app_redeem_fields[], message_app_redeemed_fields[],
    message_app_connect_fields[], message_app_refused_fields[], message_app_route_fields[],
    message_app_use_fields[], message_data_open_fields[], message_data_opened_fields[],
    message_data_refused_fields[];
/* message_greeting.c */
extern const struct wire_field message_managers_fields[], message_join_fields[],
    message_joined_fields[], message_hello_fields[], message_welcome_fields[],
    message_refused_fields[], message_fenced_fields[], message_bye_fields[];
/* message_kernel.c */
extern const struct wire_field message_kernel_status_fields[], message_heartbeat_fields[],
    message_heartbeat_reply_fields[], message_kernel_create_fields[],
    message_kernel_destroy_fields[], message_kernel_restart_fields[],
    message_kernel_forget_fields[], message_kernel_release_fields[], message_kernel_resize_fields[],
    message_kernel_describe_fields[], message_kernel_order_fields[],
    message_session_network_fields[];
/* message_node.c */
extern const struct wire_field message_network_peers_fields[], message_network_reach_fields[],
    message_drain_fields[], message_image_logins_fields[], message_image_command_fields[],
    message_image_status_fields[], message_image_list_fields[], message_service_command_fields[],
    message_service_status_fields[];
/* message_serving.c */
extern const struct wire_field message_kernel_health_fields[], message_serving_routes_fields[],
    message_serving_done_fields[], message_serving_use_fields[];
/* message_statistics.c */
extern const struct wire_field message_statistics_fields[], message_metrics_watch_fields[],
    message_metrics_values_fields[];
/* message_storage.c */
extern const struct wire_field message_storage_hello_fields[], message_storage_ask_fields[],
    message_storage_answer_fields[], message_storage_progress_fields[],
    message_storage_check_fields[], message_storage_checked_fields[], message_storage_size_fields[],
    message_storage_cancel_fields[];
/* message_stream.c */
extern const struct wire_field message_stream_open_fields[], message_stream_hello_fields[],
    message_stream_refused_fields[], message_stream_control_fields[];
/* message_web.c */
extern const struct wire_field message_web_ask_fields[], message_web_answer_fields[],
    message_web_ended_fields[];

extern const struct message_shape message_shapes[MSG_TYPE_COUNT];

#endif
