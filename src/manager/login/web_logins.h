/* SPDX-License-Identifier: Apache-2.0 */
/* web_logins.h - what web servers ask of the manager (core/fronts.h): people who log in with a
 * browser
 *
 * A web server makes a cookie and asks, with its SHA-256, to log in a person by e-mail and
 * password. It is answered with the keypair to sign that person's requests with, as it is
 * whenever it finds a login again by its cookie. What ends a login is told to every web server
 * when it is durable.
 */
#ifndef AQ_MANAGER_LOGIN_WEB_LOGINS_H
#define AQ_MANAGER_LOGIN_WEB_LOGINS_H

struct api;
struct web_logins;

struct web_logins *web_logins_new(struct api *api);
/* Nobody is answered any more. */
void web_logins_stop(struct web_logins *of);
void web_logins_free(struct web_logins *of);

#endif
