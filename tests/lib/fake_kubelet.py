# SPDX-License-Identifier: Apache-2.0
"""A kubelet as device plugins know it: it is registered with, calls back, and asks for devices.

On grpc's own implementation of HTTP/2, with messages declared here by their numbers.
"""

import concurrent.futures
import contextlib
import json
import threading

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

# Of device plugin API v1beta1 and others: name, number and type of each field. "*": repeated.
MESSAGES = {
    "Empty": [],
    "DevicePluginOptions": ["pre_start_required 1 bool",
                            "get_preferred_allocation_available 2 bool"],
    "RegisterRequest": ["version 1 string", "endpoint 2 string", "resource_name 3 string",
                        "options 4 DevicePluginOptions"],
    "NUMANode": ["ID 1 int64"],
    "TopologyInfo": ["nodes 1 *NUMANode"],
    "Device": ["ID 1 string", "health 2 string", "topology 3 TopologyInfo"],
    "ListAndWatchResponse": ["devices 1 *Device"],
    "ContainerPreferredAllocationRequest": ["available_deviceIDs 1 *string",
                                            "must_include_deviceIDs 2 *string",
                                            "allocation_size 3 int32"],
    "PreferredAllocationRequest": ["container_requests 1 *ContainerPreferredAllocationRequest"],
    "ContainerPreferredAllocationResponse": ["deviceIDs 1 *string"],
    "PreferredAllocationResponse": ["container_responses 1 *ContainerPreferredAllocationResponse"],
    "ContainerAllocateRequest": ["devices_ids 1 *string"],
    "AllocateRequest": ["container_requests 1 *ContainerAllocateRequest"],
    "Mount": ["container_path 1 string", "host_path 2 string", "read_only 3 bool"],
    "DeviceSpec": ["container_path 1 string", "host_path 2 string", "permissions 3 string"],
    "EnvsEntry": ["key 1 string", "value 2 string"],  # a map on the wire
    "ContainerAllocateResponse": ["envs 1 *EnvsEntry", "mounts 2 *Mount", "devices 3 *DeviceSpec"],
    "AllocateResponse": ["container_responses 1 *ContainerAllocateResponse"],
    # of pod resources API v1
    "ContainerDevices": ["resource_name 1 string", "device_ids 2 *string",
                         "topology 3 TopologyInfo"],
    "ContainerResources": ["name 1 string", "devices 2 *ContainerDevices", "cpu_ids 3 *int64"],
    "PodResources": ["name 1 string", "namespace 2 string", "containers 3 *ContainerResources"],
    "ListPodResourcesResponse": ["pod_resources 1 *PodResources"],
}


def make_messages():
    """A class for each message."""
    file = descriptor_pb2.FileDescriptorProto(name="fake_kubelet.proto", package="v1beta1",
                                              syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for text in fields:
            field, number, kind = text.split()
            added = message.field.add(name=field, number=int(number),
                                      label=3 if kind.startswith("*") else 1)
            kind = kind.lstrip("*")
            added.type = getattr(kinds, f"TYPE_{kind.upper()}", kinds.TYPE_MESSAGE)
            if added.type == kinds.TYPE_MESSAGE:
                added.type_name = f".v1beta1.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    factory = message_factory.MessageFactory(pool)
    return {name: factory.GetPrototype(pool.FindMessageTypeByName(f"v1beta1.{name}"))
            for name in MESSAGES}


CLASSES = make_messages()


def encode(message):
    return message.SerializeToString()


class Plugin:
    """What a kubelet has of one resource: a connection, its options, the lists it was sent."""

    def __init__(self, path, *options):
        self.channel = grpc.insecure_channel(f"unix:{path}", options=options)
        self.lists, self.has_ended = [], False
        self.changed = threading.Condition()

    def call(self, method, request, answer, **words):
        return self.channel.unary_unary(
            f"/v1beta1.DevicePlugin/{method}", request_serializer=encode,
            response_deserializer=CLASSES[answer].FromString)(request, timeout=20, **words)

    def options(self):
        return self.call("GetDevicePluginOptions", CLASSES["Empty"](), "DevicePluginOptions")

    def stream(self):
        """Each message of a ListAndWatch."""
        return self.channel.unary_stream(
            "/v1beta1.DevicePlugin/ListAndWatch", request_serializer=encode,
            response_deserializer=CLASSES["ListAndWatchResponse"].FromString)(CLASSES["Empty"]())

    def follow(self):
        """Keep what ListAndWatch says, as a kubelet does, until it ends."""
        with contextlib.suppress(grpc.RpcError):
            for message in self.stream():
                with self.changed:
                    self.lists.append({device.ID: device for device in message.devices})
                    self.changed.notify_all()
        with self.changed:
            self.has_ended = True
            self.changed.notify_all()

    def wait(self, is_good, what):
        """The newest list, once is_good(list)."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.lists and is_good(self.lists[-1]), 30), what
            return self.lists[-1]

    def prefer(self, available, size, must=()):
        request = CLASSES["PreferredAllocationRequest"]()
        request.container_requests.add(available_deviceIDs=available, must_include_deviceIDs=must,
                                       allocation_size=size)
        answer = self.call("GetPreferredAllocation", request, "PreferredAllocationResponse")
        return list(answer.container_responses[0].deviceIDs)

    def allocate(self, ids):
        request = CLASSES["AllocateRequest"]()
        request.container_requests.add(devices_ids=ids)
        return self.call("Allocate", request, "AllocateResponse").container_responses[0]


class Kubelet:
    """'refuses': how many registrations fail first."""

    def __init__(self, folder, refuses=0):
        self.folder, self.refuses = folder, refuses
        self.plugins, self.registered = {}, []
        self.containers = []  # {resource: ids} of each, as PodResources shows them
        self.pods = {}  # the same of pods with names: (namespace, name): {container: {resource: ids}}
        self.changed = threading.Condition()

    def start(self):
        """As a kubelet does: what sockets there are go, then its own is made."""
        for path in self.folder.iterdir():
            if path.is_socket():
                path.unlink()
        handler = grpc.unary_unary_rpc_method_handler(
            self.on_register, request_deserializer=CLASSES["RegisterRequest"].FromString,
            response_serializer=encode)
        self.pool = concurrent.futures.ThreadPoolExecutor(16)
        self.server = grpc.server(self.pool)
        self.server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(
            "v1beta1.Registration", {"Register": handler})])
        lister = grpc.unary_unary_rpc_method_handler(
            self.on_list, request_deserializer=CLASSES["Empty"].FromString,
            response_serializer=encode)
        self.server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(
            "v1.PodResourcesLister", {"List": lister})])
        self.server.add_insecure_port(f"unix:{self.folder}/kubelet.sock")
        self.server.add_insecure_port(f"unix:{self.folder}/pod-resources.sock")
        self.server.start()

    def on_register(self, request, context):
        """The plugin is asked before it is answered."""
        if self.refuses:
            self.refuses -= 1
            context.abort(grpc.StatusCode.UNAVAILABLE, "not yet: 100 % busy\n")
        plugin = Plugin(self.folder / request.endpoint)
        assert request.version == "v1beta1"
        assert plugin.options().get_preferred_allocation_available
        threading.Thread(target=plugin.follow, daemon=True).start()
        with self.changed:
            self.plugins[request.resource_name] = plugin
            self.registered.append(request.resource_name)
            self.changed.notify_all()
        return CLASSES["Empty"]()

    def on_list(self, _, __):
        answer = CLASSES["ListPodResourcesResponse"]()
        for number, container in enumerate(self.containers):
            pod = answer.pod_resources.add(name=f"pod{number}", namespace="default")
            self.show(pod, "main", container)
        for (namespace, name), containers in list(self.pods.items()):
            pod = answer.pod_resources.add(name=name, namespace=namespace)
            for container, resources in containers.items():
                self.show(pod, container, resources)
        return answer

    def show(self, pod, name, resources):
        shown = pod.containers.add(name=name, cpu_ids=[1, 2])
        for resource, ids in resources.items():
            shown.devices.add(resource_name=resource, device_ids=ids).topology.nodes.add(ID=1)

    def record(self, *entries):
        """The kubelet's own file: (pod's uid, container, resource, ids) of each."""
        text = json.dumps({"Data": {"PodDeviceEntries": [
            {"PodUID": uid, "ContainerName": container, "ResourceName": resource,
             "DeviceIDs": {"0": ids}, "AllocResp": ""} for uid, container, resource, ids in entries],
            "RegisteredDevices": {}}, "Checksum": 1})
        (self.folder / "kubelet_internal_checkpoint").write_text(text)

    def wait(self, count):
        """Until so many registrations were made since the start."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.registered) >= count, 60), self.registered

    def stop(self):
        for plugin in self.plugins.values():
            plugin.channel.close()
        self.server.stop(None).wait()
        self.pool.shutdown()
        self.plugins, self.registered = {}, []
