// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	_ "embed"
	"fmt"
	"slices"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/component"
	"tidekeeper.dev/tidekeeper/sandbox/internal/ports"
	"tidekeeper.dev/tidekeeper/sandbox/internal/supervisor"
)

// stopTimeout is the maximum time for a component to exit after SIGTERM.
const stopTimeout = 5 * time.Second

//go:embed audit-policy.yaml
var auditPolicy []byte

// plan computes the command line of each component.
//
// The flags are as in a production cluster, with these differences. State is not synced to disk,
// because a sandbox need not survive a power failure. Each component has a single instance, so
// there is no leader election. Profiling and the ports of the controller manager and the scheduler
// are disabled, because nothing uses them. The client-side rate limits of both components are
// raised, because the purpose of such limits is to protect shared API servers.
type plan struct {
	Options
	settings settings
	// version is the version of the control plane, such as v1.34.4. program is the path of the
	// binary with the control plane of another Kubernetes release, or "" for the compiled-in
	// control plane.
	version, program string
}

func (p plan) etcd() supervisor.Spec {
	c, client := p.Dir.credentials(), p.settings.etcd()
	// etcd requires a peer address, although it has no peers.
	peer := fmt.Sprintf("https://%s:0", ports.Loopback)
	return supervisor.Spec{
		Name: component.Etcd,
		Port: p.settings.EtcdPort,
		Args: []string{
			"--name=default",
			"--data-dir=" + p.Dir.path("etcd"),
			"--listen-client-urls=" + client,
			"--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer,
			"--initial-advertise-peer-urls=" + peer,
			"--initial-cluster=default=" + peer,
			"--trusted-ca-file=" + c.certFile(etcdCA),
			"--cert-file=" + c.certFile(etcdCert),
			"--key-file=" + c.keyFile(etcdCert),
			"--client-cert-auth",
			"--peer-trusted-ca-file=" + c.certFile(etcdCA),
			"--peer-cert-file=" + c.certFile(etcdCert),
			"--peer-key-file=" + c.keyFile(etcdCert),
			"--peer-client-cert-auth",
			"--socket-reuse-port",
			"--unsafe-no-fsync",
			"--log-level=warn",
		},
	}
}

func (p plan) apiServer() supervisor.Spec {
	c := p.Dir.credentials()
	args := []string{
		"--etcd-servers=" + p.settings.etcd(),
		"--etcd-cafile=" + c.certFile(etcdCA),
		"--etcd-certfile=" + c.certFile(etcdClientCert),
		"--etcd-keyfile=" + c.keyFile(etcdClientCert),
		"--bind-address=" + ports.Loopback,
		"--advertise-address=" + ports.Loopback,
		// Disable the reconciler that writes the API server's address to the endpoints of the
		// Service "kubernetes", because a loopback address is invalid there.
		"--endpoint-reconciler-type=none",
		fmt.Sprintf("--secure-port=%d", p.settings.APIServerPort),
		"--permit-port-sharing",
		"--tls-cert-file=" + c.certFile(apiServerCert),
		"--tls-private-key-file=" + c.keyFile(apiServerCert),
		"--client-ca-file=" + c.certFile(clusterCA),
		// The API server authenticates itself to aggregated API servers with the front-proxy
		// certificate, and sends them a request's user name and groups in these headers.
		"--requestheader-client-ca-file=" + c.certFile(frontProxyCA),
		"--requestheader-allowed-names=" + frontProxyCert,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + c.certFile(frontProxyCert),
		"--proxy-client-key-file=" + c.keyFile(frontProxyCert),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged",
		"--service-cluster-ip-range=10.96.0.0/16",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.certFile(serviceAccountKey),
		"--service-account-signing-key-file=" + c.keyFile(serviceAccountKey),
		"--profiling=false",
		"--egress-selector-config-file=" + p.Dir.path("egress.yaml"),
		// The API server must connect to nodes by IP address, because DNS cannot resolve node
		// names.
		"--kubelet-preferred-address-types=InternalIP,Hostname",
	}
	if p.RealNodes > 0 {
		args = append(args, "--kubelet-client-certificate="+c.certFile(kubeletClientCert), "--kubelet-client-key="+c.keyFile(kubeletClientCert))
	}
	if p.KeepHistory {
		args = append(args, "--etcd-compaction-interval=0")
	}
	if p.Audit {
		args = append(args,
			"--audit-policy-file="+p.Dir.path("audit-policy.yaml"),
			"--audit-log-path="+p.Dir.AuditLog(),
			// The maximum size of the log is in megabytes. It is high, because a test that counts
			// requests must find all of them in a single file.
			"--audit-log-maxsize=1024",
		)
	}
	if p.RuntimeConfig != "" {
		args = append(args, "--runtime-config="+p.RuntimeConfig)
	}
	return supervisor.Spec{Name: component.APIServer, Path: p.program, Port: p.settings.APIServerPort, Args: append(args, p.features()...)}
}

// features returns the flags that choose the features of a component: the emulated version and the
// feature gates. The API server, the controller manager and the scheduler get the same flags.
// Otherwise, the controller manager could wait for kinds that the API server does not serve.
func (p plan) features() []string {
	var flags []string
	if p.EmulatedVersion != "" {
		flags = append(flags, "--emulated-version="+p.EmulatedVersion)
	}
	if p.FeatureGates != "" {
		flags = append(flags, "--feature-gates="+p.FeatureGates)
	}
	return flags
}

func (p plan) controllerManager() supervisor.Spec {
	c := p.Dir.credentials()
	// Disable the ttl controller, which annotates nodes with the time for which kubelets may cache
	// Secrets. It would write to every node each time the cluster grows beyond a limit such as 100
	// nodes.
	controllers := "--controllers=*,-ttl-controller"
	for _, name := range p.WithoutControllers {
		controllers += ",-" + name
	}
	return p.client(component.ControllerManager,
		"--use-service-account-credentials",
		"--root-ca-file="+c.certFile(clusterCA),
		"--service-account-private-key-file="+c.keyFile(serviceAccountKey),
		"--cluster-signing-cert-file="+c.certFile(clusterCA),
		"--cluster-signing-key-file="+c.keyFile(clusterCA),
		controllers,
		// The controller manager creates this plugin directory if it is missing. The default is
		// below a system directory, so use /dev/null, which exists and contains no plugins.
		"--flex-volume-plugin-dir=/dev/null",
	)
}

func (p plan) scheduler() supervisor.Spec { return p.client(component.Scheduler) }

// client returns the specification of the controller manager or the scheduler, which are clients of
// the API server. It adds the flags that both have in common to the given arguments.
func (p plan) client(name string, args ...string) supervisor.Spec {
	return supervisor.Spec{Name: name, Path: p.program, Args: slices.Concat([]string{
		"--kubeconfig=" + p.Dir.credentials().kubeconfigOf("system:"+name),
		"--leader-elect=false",
		"--secure-port=0",
		"--profiling=false",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}, args, p.features())}
}

func (p plan) kubelets() supervisor.Spec {
	args := p.Delays.Args()
	for i := range p.RealNodes {
		args = append(args, "--real-node="+p.Dir.sockets().node(i+1))
	}
	return supervisor.Spec{Name: component.Kubelets, Args: append([]string{
		"--kubeconfig=" + p.Dir.credentials().kubeconfigOf("sandbox:"+component.Kubelets),
		"--release=" + p.version,
		fmt.Sprintf("--pod-events=%t", p.PodEvents),
		"--streaming-socket=" + p.Dir.KubeletsSocket(),
		"--program-socket=" + p.Dir.ProgramSocket(),
	}, args...)}
}

// Components lists the names of a sandbox's components in the order of their dependencies, etcd
// first.
var Components = []string{
	component.Etcd, component.APIServer, component.ControllerManager, component.Scheduler, component.Kubelets,
}
