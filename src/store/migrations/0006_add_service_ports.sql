-- What a kernel publishes, and where: JSON as in src/model/service_port.h.
ALTER TABLE kernels ADD COLUMN service_ports TEXT;
