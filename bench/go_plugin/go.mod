// SPDX-License-Identifier: Apache-2.0
module goplugin

go 1.26.0

require (
	google.golang.org/grpc v1.79.3
	k8s.io/kubelet v0.36.2
)
