// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"fmt"
	"path/filepath"
	"strings"

	"tidekeeper.dev/tidekeeper/sandbox/internal/node"

	"tidekeeper.dev/tidekeeper/sandbox/internal/dns"
)

// Paths in the directory /run, of which each real node has its own.
const (
	containerdState  = "/run/containerd"
	containerdSocket = "/run/containerd/containerd.sock"
	// runtimesState is the directory that contains a directory for each container runtime, with the
	// state of the runtime's containers.
	runtimesState = "/run/runtimes"
)

// kubeletConfig returns the kubelet's configuration. Unlike a production node, the machine has
// other uses, too, and may be nearly full. The kubelet therefore neither evicts pods when disk
// space or memory is low, nor removes images, nor installs packet filters.
func (s Spec) kubeletConfig() string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: %[1]q}
authorization: {mode: Webhook}
tlsCertFile: %[2]q
tlsPrivateKeyFile: %[3]q
containerRuntimeEndpoint: unix://%[4]s
cgroupDriver: cgroupfs
cgroupRoot: %[5]q
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false
localStorageCapacityIsolation: false
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: "0%%", nodefs.available: "0%%", nodefs.inodesFree: "0%%", imagefs.available: "0%%", imagefs.inodesFree: "0%%"}
registerNode: true
resolvConf: %[6]q
clusterDomain: %[9]s
clusterDNS: [%[10]q]
podLogsDir: %[7]q
volumePluginDir: %[8]q
serializeImagePulls: false
nodeStatusUpdateFrequency: 10s
volumeStatsAggPeriod: -1s
`, s.file(Authority), s.file(ServingCert), s.file(ServingKey), containerdSocket, s.Cgroup, s.file("resolv.conf"), s.state("pods"), s.state("volume-plugins"),
		dns.Domain, s.DNS)
}

// kubeletArgs returns the kubelet flags that have no equivalent in its configuration file.
func (s Spec) kubeletArgs() []string {
	return []string{
		"--config=" + s.file("kubelet.yaml"),
		"--kubeconfig=" + s.file(Kubeconfig),
		"--root-dir=" + s.state("kubelet"),
		"--cert-dir=" + s.state("certificates"),
		"--hostname-override=" + s.Name,
		"--node-ip=" + NetworkOf(s.Number).Node.String(),
		"--node-labels=" + node.RealLabel + "=true",
		"--v=1",
	}
}

// containerdConfig returns containerd's configuration. It disables AppArmor, whose profiles would
// be loaded for the entire machine. It sets restrict_oom_score_adj if the node's process cannot
// lower OOM scores.
func (s Spec) containerdConfig(snapshotter, runc string, restrictOOM bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, `version = 3
root = %q
state = %q
disabled_plugins = ["io.containerd.nri.v1.nri", "io.containerd.internal.v1.restart"]

[grpc]
  address = %q

[plugins."io.containerd.internal.v1.opt"]
  path = %q

[plugins."io.containerd.cri.v1.images"]
  snapshotter = %q
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = %q

[plugins."io.containerd.cri.v1.runtime"]
  disable_apparmor = true
  restrict_oom_score_adj = %t
  tolerate_missing_hugetlb_controller = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = [%q]
    conf_dir = %q
    use_internal_loopback = true
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = %q
`, s.state("containerd"), containerdState, containerdSocket, s.state("opt"), snapshotter, PauseImage, restrictOOM,
		s.Programs, s.file("cni"), Runtimes[0])
	for _, name := range Runtimes {
		fmt.Fprintf(&b, `    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.%s]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.%s.options]
        BinaryName = %q
        Root = %q
        SystemdCgroup = false
`, name, name, runc, filepath.Join(runtimesState, name))
	}
	return b.String()
}

// cniConfig returns the CNI configuration of the pod network. Each pod is connected to the node by
// a pair of virtual Ethernet devices, and the node routes between its pods.
func (s Spec) cniConfig() string {
	return fmt.Sprintf(`{"cniVersion": "1.0.0", "name": "sandbox", "plugins": [{
  "type": "ptp", "ipMasq": false,
  "ipam": {"type": "host-local", "dataDir": "/run/cni-addresses", "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}
}]}
`, NetworkOf(s.Number).Pods)
}
