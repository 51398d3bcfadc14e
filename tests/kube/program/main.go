// SPDX-License-Identifier: Apache-2.0
/*
 * kube COMPONENT FLAGS: Kubernetes' own programs, each under its first
 * argument, in one binary: they share nearly all of their code, and one link
 * takes a fifth of the time of six.
 */
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	components := map[string]func() *cobra.Command{
		"apiserver":          apiserver.NewAPIServerCommand,
		"controller-manager": controllers.NewControllerManagerCommand,
		"scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
		"proxy":              proxy.NewProxyCommand,
		"kubelet": func() *cobra.Command {
			return kubelet.NewKubeletCommand(context.Background())
		},
		"kubectl": kubectl.NewDefaultKubectlCommand,
	}
	var component func() *cobra.Command

	if len(os.Args) > 1 {
		component = components[os.Args[1]]
	}
	if component == nil {
		fmt.Fprintln(os.Stderr, "usage: kube COMPONENT FLAGS")
		os.Exit(2)
	}
	os.Args = append(os.Args[:1], os.Args[2:]...)
	os.Exit(cli.Run(component()))
}
