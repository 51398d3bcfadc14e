# SPDX-License-Identifier: Apache-2.0
"""A database as Backend.AI 22.03 keeps it, on a server of the test's own, and dumps of it."""

import subprocess

# "correct horse" by bcrypt, "battery staple" by SHA-crypt, and one that nobody here can check
BCRYPT = "$2b$05$zJCxasJl9a60c.79bTgMkOBjBIYhF5/7w6UOSJ5NS8WOzcOEx3p2C"
SHA = ("$6$rounds=5000$arpH/ufrYX30OXy9$j6tIub64LQgrh1FVsiH1q1qtt545ytWLBDn3VqXzScztpQnQMh.QKPqoi"
       "56YUno60dXCsW7Hbi4h9B31c1KIk1")
OTHER = "pbkdf2_sha256$260000$salt$aGFzaA=="

ANN, BOB, CEE, DEE = (f"00000000-0000-4000-8000-00000000000{i}" for i in range(1, 5))
LAB, SHOP = (f"00000000-0000-4000-8000-0000000000a{i}" for i in range(1, 3))
IMAGE = "00000000-0000-4000-8000-0000000000f1"
KEYS = {"ann": ("AKIAANNANNANNANNANNA", "s3cret-of-ann_" + "a" * 26),
        "bob": ("AKIABOBBOBBOBBOBBOBB", "s3cret-of-bob_" + "b" * 26),
        "cee": ("AKIACEECEECEECEECEEC", "s3cret/of+cee_" + "c" * 26)}
SSH = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + "C" * 43


def pack(files):
    """A list of maps of short texts as MessagePack, as PostgreSQL takes bytes."""
    def text(value):
        raw = value.encode()
        return (bytes([0xA0 + len(raw)]) if len(raw) < 32 else b"\xd9" + bytes([len(raw)])) + raw
    out = bytes([0x90 + len(files)])
    for file in files:
        out += bytes([0x80 + len(file)]) + b"".join(text(k) + text(v) for k, v in file.items())
    return r"\x" + out.hex()


VIMRC = pack([{"path": ".vimrc", "perm": "644", "data": "set nu\n\ttab \\ back\n"}])
RESERVED = pack([{"path": ".ssh", "perm": "700", "data": "x"}])
NONE = r"\x90"

SCHEMA = """
CREATE TYPE userrole AS ENUM ('superadmin', 'admin', 'user', 'monitor');
CREATE TYPE userstatus AS ENUM ('active', 'inactive', 'deleted', 'before-verification');
CREATE TYPE default_unspecified AS ENUM ('LIMITED', 'UNLIMITED');
CREATE TABLE alembic_version (version_num varchar(32) PRIMARY KEY);
CREATE TABLE domains (name varchar(64) PRIMARY KEY, description varchar(512), is_active boolean,
  created_at timestamptz DEFAULT now(), modified_at timestamptz DEFAULT now(),
  total_resource_slots jsonb, allowed_vfolder_hosts varchar[] NOT NULL DEFAULT '{}',
  allowed_docker_registries varchar[] NOT NULL DEFAULT '{}', integration_id varchar(512),
  dotfiles bytea NOT NULL DEFAULT '\\x90');
CREATE TABLE groups (id uuid PRIMARY KEY, name varchar(64) NOT NULL, description varchar(512),
  is_active boolean, created_at timestamptz DEFAULT now(), modified_at timestamptz DEFAULT now(),
  integration_id varchar(512), domain_name varchar(64) NOT NULL REFERENCES domains,
  total_resource_slots jsonb, allowed_vfolder_hosts varchar[] NOT NULL DEFAULT '{}',
  dotfiles bytea NOT NULL DEFAULT '\\x90', UNIQUE (name, domain_name));
CREATE TABLE users (uuid uuid PRIMARY KEY, username varchar(64) UNIQUE,
  email varchar(64) NOT NULL UNIQUE, password text, need_password_change boolean,
  full_name varchar(64), description varchar(500), status userstatus NOT NULL DEFAULT 'active',
  status_info text, created_at timestamptz DEFAULT now(), modified_at timestamptz DEFAULT now(),
  integration_id varchar(512), domain_name varchar(64) REFERENCES domains,
  role userrole DEFAULT 'user');
CREATE TABLE association_groups_users (user_id uuid REFERENCES users, group_id uuid REFERENCES groups,
  UNIQUE (user_id, group_id));
CREATE TABLE keypair_resource_policies (name varchar(256) PRIMARY KEY,
  created_at timestamptz DEFAULT now(),
  default_for_unspecified default_unspecified NOT NULL DEFAULT 'LIMITED',
  total_resource_slots jsonb NOT NULL, max_session_lifetime int NOT NULL DEFAULT 0,
  max_concurrent_sessions int NOT NULL, max_containers_per_session int NOT NULL,
  max_vfolder_count int NOT NULL, max_vfolder_size bigint NOT NULL, idle_timeout bigint NOT NULL,
  allowed_vfolder_hosts varchar[] NOT NULL DEFAULT '{}');
CREATE TABLE keypairs (user_id varchar(256), access_key varchar(20) PRIMARY KEY,
  secret_key varchar(40), is_active boolean, is_admin boolean DEFAULT false,
  created_at timestamptz DEFAULT now(), modified_at timestamptz DEFAULT now(),
  last_used timestamptz, rate_limit int, num_queries int DEFAULT 0, ssh_public_key varchar(750),
  ssh_private_key varchar(2000), "user" uuid NOT NULL REFERENCES users,
  resource_policy varchar(256) NOT NULL REFERENCES keypair_resource_policies,
  dotfiles bytea NOT NULL DEFAULT '\\x90', bootstrap_script text NOT NULL DEFAULT '');
CREATE TABLE scaling_groups (name varchar(64) PRIMARY KEY, description varchar(512),
  is_active boolean, created_at timestamptz DEFAULT now(), wsproxy_addr varchar(1024),
  driver varchar(64) NOT NULL, driver_opts jsonb NOT NULL, scheduler varchar(64) NOT NULL,
  scheduler_opts jsonb NOT NULL);
CREATE TABLE sgroups_for_domains (id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  scaling_group varchar(64) NOT NULL REFERENCES scaling_groups,
  domain varchar(64) NOT NULL REFERENCES domains);
CREATE TABLE sgroups_for_groups (id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  scaling_group varchar(64) NOT NULL REFERENCES scaling_groups,
  "group" uuid NOT NULL REFERENCES groups);
CREATE TABLE sgroups_for_keypairs (id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  scaling_group varchar(64) NOT NULL REFERENCES scaling_groups,
  access_key varchar(20) NOT NULL REFERENCES keypairs);
CREATE TABLE resource_presets (name varchar(256) PRIMARY KEY, resource_slots jsonb NOT NULL,
  shared_memory bigint);
CREATE TABLE images (id uuid PRIMARY KEY, name varchar NOT NULL, created_at timestamptz DEFAULT now(),
  tag text, registry varchar, architecture varchar DEFAULT 'x86_64', config_digest char(72),
  size_bytes bigint, type varchar, accelerators varchar, labels jsonb, resources jsonb);
CREATE TABLE image_aliases (id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  alias varchar UNIQUE, image uuid REFERENCES images);
CREATE TABLE agents (id varchar(64) PRIMARY KEY, status varchar(16));
CREATE TABLE kernels (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), session_name varchar(64),
  startup_command text);
CREATE TABLE vfolders (id uuid PRIMARY KEY, host varchar(128) NOT NULL, name varchar(64) NOT NULL,
  usage_mode varchar(16), permission varchar(8), max_files int, max_size int, num_files int,
  cur_size int, created_at timestamptz DEFAULT now(), last_used timestamptz, creator varchar(128),
  unmanaged_path varchar(512), ownership_type varchar(8), "user" uuid, "group" uuid,
  cloneable boolean);
CREATE FUNCTION noise() RETURNS int LANGUAGE sql AS $body$ SELECT 1; -- ';' and 'quotes' $body$;
"""

ROWS = rf"""
INSERT INTO alembic_version VALUES ('81c264528f20');
INSERT INTO domains (name, description, is_active, total_resource_slots, dotfiles) VALUES
  ('default', 'The default domain', true, '{{}}', '{NONE}'),
  ('labs', E'two\nlines\tand \\ a "backslash"; --', true,
   '{{"cpu": "64", "cuda.shares": "4", "mem": "Infinity"}}', '{VIMRC}');
INSERT INTO groups (id, name, is_active, domain_name, total_resource_slots) VALUES
  ('{LAB}', 'lasers', true, 'labs', '{{"cpu": "16"}}'),
  ('{SHOP}', 'default', true, 'default', '{{}}');
INSERT INTO keypair_resource_policies (name, default_for_unspecified, total_resource_slots,
  max_session_lifetime, max_concurrent_sessions, max_containers_per_session, max_vfolder_count,
  max_vfolder_size, idle_timeout) VALUES
  ('default', 'UNLIMITED', '{{}}', 0, 5, 1, 10, 0, 3600),
  ('students', 'LIMITED', '{{"cpu": "4", "mem": "17179869184"}}', 86400, 3, 1, 10, 0, -1);
INSERT INTO users (uuid, username, email, password, need_password_change, full_name, description,
  status, domain_name, role) VALUES
  ('{ANN}', 'ann', 'ann@labs.example', '{BCRYPT}', false, 'Ann''s 이름', 'x', 'active', 'labs', 'user'),
  ('{BOB}', 'bob', 'bob@labs.example', '{SHA}', false, NULL, NULL, 'active', 'labs', 'admin'),
  ('{CEE}', NULL, 'cee@labs.example', '{OTHER}', false, '', NULL, 'inactive', 'labs', 'user'),
  ('{DEE}', 'dee', 'dee@labs.example', NULL, true, 'D\N', NULL, 'before-verification', 'default', 'user');
INSERT INTO association_groups_users VALUES ('{ANN}', '{LAB}'), ('{BOB}', '{LAB}'), ('{DEE}', '{SHOP}');
INSERT INTO keypairs (user_id, access_key, secret_key, is_active, is_admin, rate_limit, "user",
  resource_policy, ssh_public_key, ssh_private_key, dotfiles, bootstrap_script) VALUES
  ('ann@labs.example', '{KEYS["ann"][0]}', '{KEYS["ann"][1]}', true, false, 30000, '{ANN}',
   'students', '{SSH}', 'private', '{VIMRC}', E'#!/bin/sh\necho hi; # it''s\n'),
  ('bob@labs.example', '{KEYS["bob"][0]}', '{KEYS["bob"][1]}', true, true, 10000, '{BOB}',
   'default', NULL, NULL, '{RESERVED}', ''),
  ('cee@labs.example', '{KEYS["cee"][0]}', '{KEYS["cee"][1]}', false, false, NULL, '{CEE}',
   'default', 'nonsense', NULL, '{NONE}', '');
INSERT INTO scaling_groups (name, description, is_active, driver, driver_opts, scheduler,
  scheduler_opts) VALUES
  ('default', 'all', true, 'static', '{{}}', 'fifo', '{{}}'),
  ('gpu', NULL, true, 'static', '{{}}', 'mof', '{{"allowed_session_types": ["batch", "interactive"],
   "pending_timeout": 3600, "config": {{"num_retries_to_skip": 3, "odd": 1}},
   "agent_selection_strategy": "roundrobin", "strange": true}}');
INSERT INTO sgroups_for_domains (scaling_group, domain) VALUES ('default', 'default'), ('gpu', 'labs');
INSERT INTO sgroups_for_groups (scaling_group, "group") VALUES ('default', '{LAB}');
INSERT INTO sgroups_for_keypairs (scaling_group, access_key) VALUES ('default', '{KEYS["bob"][0]}');
INSERT INTO resource_presets VALUES
  ('small', '{{"cpu": "1", "mem": "1073741824"}}', NULL),
  ('shared', '{{"cpu": "2", "mem": "2147483648"}}', 67108864),
  ('a name of words', '{{"cpu": "1"}}', NULL);
INSERT INTO images (id, name, tag, registry) VALUES
  ('{IMAGE}', 'cr.example/stable/python:3.9-ubuntu20.04', '3.9-ubuntu20.04', 'cr.example');
INSERT INTO image_aliases (alias, image) VALUES ('python39', '{IMAGE}');
INSERT INTO agents VALUES ('i-1', 'ALIVE'), ('i-2', 'LOST');
INSERT INTO kernels (session_name, startup_command) SELECT 's' || i, repeat('x;''' || chr(10), i % 50)
  FROM generate_series(1, 500) i;
INSERT INTO vfolders (id, host, name, usage_mode, permission, creator, ownership_type, "user")
  VALUES ('{IMAGE}', 'local:volume1', 'data', 'general', 'rw', 'ann@labs.example', 'user', '{ANN}');
"""


def make(server, database="backend"):
    """The database on a server that runs; its URI."""
    server.run(f"CREATE DATABASE {database}")
    server.run(SCHEMA + ROWS, database)
    return server.uri(database)


def dump(uri, *options):
    return subprocess.run(["pg_dump", "--no-owner", *options, "-d", uri], check=True,
                          capture_output=True).stdout


def dump_all(uri):
    """Of all databases of the server, as Backend.AI's documents back it up."""
    return subprocess.run(["pg_dumpall", "--no-owner", "-d", uri], check=True,
                          capture_output=True).stdout
