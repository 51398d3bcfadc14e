/* SPDX-License-Identifier: Apache-2.0 */
/* A mail as SMTP sends it: its header, and its text in Base64, whose lines no rule of SMTP touches.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <nettle/base64.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "base/uuid.h"
#include "http/smtp.h"

#define LINE_BYTES 57    /* 76 characters of Base64 */
#define WORD_BYTES 42    /* of an encoded word, which has 75 characters at most */
#define PLAIN_SUBJECT 60 /* characters that need no second line */
#define ADDRESS_CHARS \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.!#$%&'*+-/=?^_`{|}~"
#define HOST_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-[]:"

void smtp_mail_free(struct smtp_mail *mail)
{
    if (!mail)
        return;
    if (mail->password)
        explicit_bzero(mail->password, strlen(mail->password));
    for (size_t i = 0; i < mail->to_count; i++)
        free(mail->to[i]);
    free(mail->username);
    free(mail->password);
    free(mail->from);
    free(mail->to);
    free(mail->subject);
    free(mail->text);
    free(mail);
}

bool smtp_address_is_valid(const char *text)
{
    size_t name = strspn(text, ADDRESS_CHARS);
    const char *host = text + name + 1;

    return name && text[name] == '@' && *host && !host[strspn(host, HOST_CHARS)]
           && strlen(text) <= SMTP_ADDRESS_MAX;
}

static void smtp_mail_write_base64(const char *bytes, size_t len, struct strbuf *out)
{
    char text[BASE64_ENCODE_RAW_LENGTH(LINE_BYTES)];

    base64_encode_raw(text, len, (const uint8_t *)bytes);
    strbuf_add(out, text, BASE64_ENCODE_RAW_LENGTH(len));
}

/* So many bytes of the front that no character is cut. */
static size_t smtp_mail_fit(const char *text, size_t len)
{
    size_t fits = AQ_MIN(len, WORD_BYTES);

    while (fits < len && fits > WORD_BYTES - 4 && ((unsigned char)text[fits] & 0xc0) == 0x80)
        fits--;
    return fits;
}

/* As it is, or in encoded words (RFC 2047). */
static void smtp_mail_write_subject(const char *subject, struct strbuf *out)
{
    size_t len = strlen(subject), plain = 0;

    while (plain < len && isprint((unsigned char)subject[plain]))
        plain++;
    strbuf_adds(out, "Subject: ");
    if (plain == len && len <= PLAIN_SUBJECT) {
        strbuf_adds(out, subject);
    } else {
        for (size_t at = 0, n; at < len; at += n) {
            n = smtp_mail_fit(subject + at, len - at);
            strbuf_adds(out, at ? "\r\n =?UTF-8?B?" : "=?UTF-8?B?");
            smtp_mail_write_base64(subject + at, n, out);
            strbuf_adds(out, "?=");
        }
    }
    strbuf_adds(out, "\r\n");
}

static void smtp_mail_write_date(struct strbuf *out)
{
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    time_t now = (time_t)(clock_realtime_usec() / USEC_PER_SEC);
    struct tm tm;

    (void)gmtime_r(&now, &tm);
    strbuf_addf(out, "Date: %.3s, %d %.3s %d %02d:%02d:%02d +0000\r\n", days + 3 * tm.tm_wday,
                tm.tm_mday, months + 3 * tm.tm_mon, tm.tm_year + 1900, tm.tm_hour, tm.tm_min,
                tm.tm_sec);
}

void smtp_mail_write(const struct smtp_mail *mail, const char *own_name, struct strbuf *out)
{
    struct uuid id = uuid_random();
    char id_text[UUID_TEXT_MAX];
    size_t len = strlen(mail->text);

    smtp_mail_write_date(out);
    strbuf_addf(out, "Message-ID: <%s@%s>\r\nFrom: %s\r\nTo: ", uuid_format(&id, id_text), own_name,
                mail->from);
    for (size_t i = 0; i < mail->to_count; i++)
        strbuf_addf(out, "%s%s", i ? ",\r\n " : "", mail->to[i]);
    strbuf_adds(out, "\r\n");
    smtp_mail_write_subject(mail->subject, out);
    strbuf_adds(out, "Auto-Submitted: auto-generated\r\n"
                     "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n"
                     "Content-Transfer-Encoding: base64\r\n\r\n");
    for (size_t at = 0; at < len; at += LINE_BYTES) {
        smtp_mail_write_base64(mail->text + at, AQ_MIN(len - at, LINE_BYTES), out);
        strbuf_adds(out, "\r\n");
    }
}
