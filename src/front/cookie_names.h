/* SPDX-License-Identifier: Apache-2.0 */
/* cookie_names.h - names of the cookies of a web server
 *
 * Browsers send a host's cookies to each of its ports: a proxy of the same host gets them, too.
 */
#ifndef AQ_FRONT_COOKIE_NAMES_H
#define AQ_FRONT_COOKIE_NAMES_H

#define COOKIE_LOGIN_NAME "AIOHTTP_SESSION" /* as Backend.AI's web server calls it */
#define COOKIE_DEVICE_NAME "aliquot_browser"
#define COOKIE_HOST_PREFIX "__Host-" /* goes before where browsers come by https */

#endif
