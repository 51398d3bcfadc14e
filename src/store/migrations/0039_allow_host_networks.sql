-- 1: sessions may use the network and the RDMA devices of their nodes, where the resource group
-- allows it.
ALTER TABLE keypair_policies ADD COLUMN host_network INTEGER NOT NULL DEFAULT 0;
