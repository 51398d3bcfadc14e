// SPDX-License-Identifier: Apache-2.0
/*
 * What bench/kube_allocate measures with.
 *
 *	plugin serve SOCKET ENVS MOUNTS: a device plugin as they are written in
 *	Go, that answers Allocate with so many variables and mounts.
 *
 *	plugin measure ROUNDS SOCKET SOCKET IDS...: as a kubelet, Allocate of
 *	these ids by both in turn; prints the microseconds of each, by socket,
 *	as JSON.
 */
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

type plugin struct {
	api.UnimplementedDevicePluginServer
	envs, mounts int
}

func (self plugin) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	response := &api.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		cards := map[string]bool{}
		card := ""
		for _, id := range container.DevicesIds {
			card = id[:len(id)-len("_00")]
			cards[card] = true
		}
		if len(cards) != 1 {
			return nil, fmt.Errorf("%d cards", len(cards))
		}
		part := &api.ContainerAllocateResponse{Envs: map[string]string{}}
		for i := range self.envs {
			part.Envs[fmt.Sprintf("VISIBLE_DEVICES_%d", i)] = card
		}
		for i := range self.mounts {
			path := fmt.Sprintf("/opt/kernel/library%d.so", i)
			part.Mounts = append(part.Mounts, &api.Mount{
				ContainerPath: path, HostPath: "/var/lib/plugin" + path, ReadOnly: true})
		}
		response.ContainerResponses = append(response.ContainerResponses, part)
	}
	return response, nil
}

func serve(socket string, envs, mounts int) error {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, plugin{envs: envs, mounts: mounts})
	return server.Serve(listener)
}

func allocate(client api.DevicePluginClient, ids []string) (float64, error) {
	request := &api.AllocateRequest{
		ContainerRequests: []*api.ContainerAllocateRequest{{DevicesIds: ids}}}
	started := time.Now()
	response, err := client.Allocate(context.Background(), request)
	took := time.Since(started)
	if err == nil && len(response.ContainerResponses[0].Mounts) == 0 {
		err = fmt.Errorf("an answer without mounts")
	}
	return float64(took.Nanoseconds()) / 1e3, err
}

func measure(rounds int, sockets, ids []string) error {
	took := map[string][]float64{}
	clients := map[string]api.DevicePluginClient{}
	for _, socket := range sockets {
		connection, err := grpc.NewClient("unix://"+socket,
			grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return err
		}
		clients[socket] = api.NewDevicePluginClient(connection)
		if _, err := allocate(clients[socket], ids); err != nil { // connects
			return err
		}
	}
	for range rounds {
		for _, socket := range sockets {
			us, err := allocate(clients[socket], ids)
			if err != nil {
				return err
			}
			took[socket] = append(took[socket], us)
		}
	}
	return json.NewEncoder(os.Stdout).Encode(took)
}

func run(words []string) error {
	var envs, mounts, rounds int
	if len(words) == 4 && words[0] == "serve" {
		if _, err := fmt.Sscan(words[2]+" "+words[3], &envs, &mounts); err != nil {
			return err
		}
		return serve(words[1], envs, mounts)
	}
	if len(words) > 4 && words[0] == "measure" {
		if _, err := fmt.Sscan(words[1], &rounds); err != nil {
			return err
		}
		return measure(rounds, words[2:4], words[4:])
	}
	return fmt.Errorf("usage: plugin serve SOCKET ENVS MOUNTS | plugin measure ROUNDS SOCKET SOCKET IDS...")
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
