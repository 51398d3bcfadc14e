/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object that is no plugin. */
extern const int aq_nothing;
const int aq_nothing = 1;
