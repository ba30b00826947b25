// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	_ "embed"
	"fmt"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/component"
	"tidekeeper.dev/tidekeeper/sandbox/internal/kubelet"
	"tidekeeper.dev/tidekeeper/sandbox/internal/ports"
	"tidekeeper.dev/tidekeeper/sandbox/internal/supervisor"
)

// stopTimeout is how long a component may take to end when it is asked to.
const stopTimeout = 5 * time.Second

//go:embed audit-policy.yaml
var auditPolicy []byte

// The flags below are those of a production cluster, with these differences.
// State is not synced to disk, because a sandbox need not survive a power
// failure. There is one of each component, so none elects a leader. What
// cannot be reached from outside (profiles, ports of the controller manager and
// the scheduler) is off. The limits on what the clients of the components may
// ask for are raised: they protect shared API servers.

func etcd(d Dir, port int) supervisor.Spec {
	client := fmt.Sprintf("https://%s:%d", ports.Loopback, port)
	// There are no peers, but etcd wants to listen for some.
	peer := fmt.Sprintf("https://%s:0", ports.Loopback)
	return supervisor.Spec{
		Name: component.Etcd,
		Port: port,
		Args: []string{
			"--name=default",
			"--data-dir=" + d.path("etcd"),
			"--listen-client-urls=" + client,
			"--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer,
			"--initial-advertise-peer-urls=" + peer,
			"--initial-cluster=default=" + peer,
			"--trusted-ca-file=" + d.certFile(etcdCA),
			"--cert-file=" + d.certFile(etcdCert),
			"--key-file=" + d.keyFile(etcdCert),
			"--client-cert-auth",
			"--peer-trusted-ca-file=" + d.certFile(etcdCA),
			"--peer-cert-file=" + d.certFile(etcdCert),
			"--peer-key-file=" + d.keyFile(etcdCert),
			"--peer-client-cert-auth",
			"--socket-reuse-port",
			"--unsafe-no-fsync",
			"--log-level=warn",
		},
	}
}

func apiServer(d Dir, port, etcdPort int, o Options) supervisor.Spec {
	args := []string{
		fmt.Sprintf("--etcd-servers=https://%s:%d", ports.Loopback, etcdPort),
		"--etcd-cafile=" + d.certFile(etcdCA),
		"--etcd-certfile=" + d.certFile(etcdClientCert),
		"--etcd-keyfile=" + d.keyFile(etcdClientCert),
		"--bind-address=" + ports.Loopback,
		"--advertise-address=" + ports.Loopback,
		// The endpoints of the service "kubernetes" may not be loopback ones.
		"--endpoint-reconciler-type=none",
		fmt.Sprintf("--secure-port=%d", port),
		"--permit-port-sharing",
		"--tls-cert-file=" + d.certFile(apiServerCert),
		"--tls-private-key-file=" + d.keyFile(apiServerCert),
		"--client-ca-file=" + d.certFile(clusterCA),
		// Servers that it aggregates believe whom it names.
		"--requestheader-client-ca-file=" + d.certFile(frontProxyCA),
		"--requestheader-allowed-names=" + frontProxyCert,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + d.certFile(frontProxyCert),
		"--proxy-client-key-file=" + d.keyFile(frontProxyCert),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged",
		"--service-cluster-ip-range=10.96.0.0/16",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + d.certFile(serviceAccountKey),
		"--service-account-signing-key-file=" + d.keyFile(serviceAccountKey),
		"--profiling=false",
		"--egress-selector-config-file=" + d.path("egress.yaml"),
		// The names of nodes are in no DNS.
		"--kubelet-preferred-address-types=InternalIP,Hostname",
	}
	if o.RealNodes > 0 {
		args = append(args, "--kubelet-client-certificate="+d.certFile(kubeletClientCert), "--kubelet-client-key="+d.keyFile(kubeletClientCert))
	}
	if o.KeepHistory {
		args = append(args, "--etcd-compaction-interval=0")
	}
	if o.Audit {
		args = append(args,
			"--audit-policy-file="+d.path("audit-policy.yaml"),
			"--audit-log-path="+d.AuditLog(),
			// In megabytes. Tests that count requests need them in one file.
			"--audit-log-maxsize=1024",
		)
	}
	return supervisor.Spec{Name: component.APIServer, Port: port, Args: append(args, emulating(o.EmulatedVersion)...)}
}

// emulating makes a component behave like one of that version. All that watch what the
// API server has must be of its version, or they wait for kinds that it does not have.
func emulating(version string) []string {
	if version == "" {
		return nil
	}
	return []string{"--emulated-version=" + version}
}

func controllerManager(d Dir, without []string, emulated string) supervisor.Spec {
	// It annotates each node with how long kubelets may cache secrets, a write to every
	// node whenever the cluster grows much.
	controllers := "--controllers=*,-ttl-controller"
	for _, name := range without {
		controllers += ",-" + name
	}
	kubeconfig := d.kubeconfigOf("system:" + component.ControllerManager)
	return supervisor.Spec{Name: component.ControllerManager, Args: append([]string{
		"--kubeconfig=" + kubeconfig,
		"--use-service-account-credentials",
		"--root-ca-file=" + d.certFile(clusterCA),
		"--service-account-private-key-file=" + d.keyFile(serviceAccountKey),
		"--cluster-signing-cert-file=" + d.certFile(clusterCA),
		"--cluster-signing-key-file=" + d.keyFile(clusterCA),
		controllers,
		// It makes the directory of these plugins whenever it is missing, by default one
		// of the machine's. What is there, and is no directory, has no plugins.
		"--flex-volume-plugin-dir=/dev/null",
		"--leader-elect=false",
		"--secure-port=0",
		"--profiling=false",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}, emulating(emulated)...)}
}

func scheduler(d Dir, emulated string) supervisor.Spec {
	kubeconfig := d.kubeconfigOf("system:" + component.Scheduler)
	return supervisor.Spec{Name: component.Scheduler, Args: append([]string{
		"--kubeconfig=" + kubeconfig,
		"--leader-elect=false",
		"--secure-port=0",
		"--profiling=false",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}, emulating(emulated)...)}
}

func kubelets(d Dir, release string, events bool, delays kubelet.Delays, realNodes int) supervisor.Spec {
	args := delays.Args()
	for i := range realNodes {
		args = append(args, "--real-node="+d.nodeSocket(i+1))
	}
	return supervisor.Spec{Name: component.Kubelets, Args: append([]string{
		"--kubeconfig=" + d.kubeconfigOf("sandbox:"+component.Kubelets),
		"--release=" + release,
		fmt.Sprintf("--pod-events=%t", events),
		"--streaming-socket=" + d.KubeletsSocket(),
		"--program-socket=" + d.ProgramSocket(),
	}, args...)}
}

// Components are the names of what runs in a sandbox, in the order in which
// they depend on each other.
var Components = []string{
	component.Etcd, component.APIServer, component.ControllerManager, component.Scheduler, component.Kubelets,
}
