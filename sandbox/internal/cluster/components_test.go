// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"strings"
	"testing"

	"tidekeeper.dev/tidekeeper/sandbox/internal/component"
	"tidekeeper.dev/tidekeeper/sandbox/internal/kubelet"
	"tidekeeper.dev/tidekeeper/sandbox/internal/supervisor"
)

// specs returns the specifications of a plan's components by name.
func specs(p plan) map[string]supervisor.Spec {
	all := map[string]supervisor.Spec{}
	for _, s := range []supervisor.Spec{p.etcd(), p.apiServer(), p.controllerManager(), p.scheduler(), p.kubelets()} {
		all[s.Name] = s
	}
	return all
}

// TestOptionsBecomeArguments checks that each option changes only the expected arguments of the
// expected components.
func TestOptionsBecomeArguments(t *testing.T) {
	standard := plan{
		Options:  Options{Dir: "/data", Delays: kubelet.DefaultDelays(), PodEvents: true},
		settings: settings{APIServerPort: 6443, EtcdPort: 2379}, version: "v1.36.0",
	}
	for _, tc := range []struct {
		name   string
		change func(*plan)
		// added and removed list the expected changes to the arguments, by component.
		added, removed map[string][]string
	}{
		{"audit", func(p *plan) { p.Audit = true }, map[string][]string{
			component.APIServer: {"--audit-policy-file=/data/audit-policy.yaml", "--audit-log-path=/data/audit.log", "--audit-log-maxsize=1024"},
		}, nil},
		{"history", func(p *plan) { p.KeepHistory = true }, map[string][]string{component.APIServer: {"--etcd-compaction-interval=0"}}, nil},
		{"two real nodes", func(p *plan) { p.RealNodes = 2 }, map[string][]string{
			component.APIServer: {"--kubelet-client-certificate=/data/pki/kube-apiserver-kubelet.crt", "--kubelet-client-key=/data/pki/kube-apiserver-kubelet.key"},
			component.Kubelets:  {"--real-node=/data/nodes/real-1/node.sock", "--real-node=/data/nodes/real-2/node.sock"},
		}, nil},
		{"an emulated version", func(p *plan) { p.EmulatedVersion = "1.34" }, map[string][]string{
			component.APIServer: {"--emulated-version=1.34"}, component.ControllerManager: {"--emulated-version=1.34"}, component.Scheduler: {"--emulated-version=1.34"},
		}, nil},
		{"feature gates", func(p *plan) { p.FeatureGates = "A=true" }, map[string][]string{
			component.APIServer: {"--feature-gates=A=true"}, component.ControllerManager: {"--feature-gates=A=true"}, component.Scheduler: {"--feature-gates=A=true"},
		}, nil},
		{"an API that is off by default", func(p *plan) { p.RuntimeConfig = "batch/v2alpha1=true" }, map[string][]string{
			component.APIServer: {"--runtime-config=batch/v2alpha1=true"},
		}, nil},
		{"without controllers", func(p *plan) { p.WithoutControllers = []string{"deployment-controller", "job-controller"} },
			map[string][]string{component.ControllerManager: {"--controllers=*,-ttl-controller,-deployment-controller,-job-controller"}},
			map[string][]string{component.ControllerManager: {"--controllers=*,-ttl-controller"}}},
		{"no events of pods", func(p *plan) { p.PodEvents = false },
			map[string][]string{component.Kubelets: {"--pod-events=false"}}, map[string][]string{component.Kubelets: {"--pod-events=true"}}},
		{"another release", func(p *plan) { p.version = "v1.34.4" },
			map[string][]string{component.Kubelets: {"--release=v1.34.4"}}, map[string][]string{component.Kubelets: {"--release=v1.36.0"}}},
		{"other ports", func(p *plan) { p.settings = settings{APIServerPort: 7443, EtcdPort: 3379} },
			map[string][]string{
				component.Etcd:      {"--advertise-client-urls=https://127.0.0.1:3379", "--listen-client-urls=https://127.0.0.1:3379"},
				component.APIServer: {"--etcd-servers=https://127.0.0.1:3379", "--secure-port=7443"},
			}, map[string][]string{
				component.Etcd:      {"--advertise-client-urls=https://127.0.0.1:2379", "--listen-client-urls=https://127.0.0.1:2379"},
				component.APIServer: {"--etcd-servers=https://127.0.0.1:2379", "--secure-port=6443"},
			}},
		{"options of the sandbox alone", func(p *plan) { p.Nodes, p.Fresh, p.Kubeconfig = 7, true, "/kubeconfig" }, nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			changed := standard
			tc.change(&changed)
			before, after := specs(standard), specs(changed)
			for name := range before {
				if got := missingFrom(after[name].Args, before[name].Args); !slices.Equal(got, sorted(tc.removed[name])) {
					t.Errorf("%s loses %q, want %q", name, got, tc.removed[name])
				}
				if got := missingFrom(before[name].Args, after[name].Args); !slices.Equal(got, sorted(tc.added[name])) {
					t.Errorf("%s gets %q, want %q", name, got, tc.added[name])
				}
			}
		})
	}
}

// missingFrom returns the arguments that are missing in the list, sorted.
func missingFrom(list, arguments []string) []string {
	return sorted(slices.DeleteFunc(slices.Clone(arguments), func(a string) bool { return slices.Contains(list, a) }))
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// TestReleaseRunsControlPlane checks that the binary of another Kubernetes release runs the control
// plane, but neither etcd nor the kubelets.
func TestReleaseRunsControlPlane(t *testing.T) {
	p := plan{Options: Options{Dir: "/data"}, program: "/bin/kubernetes-1.34"}
	for name, s := range specs(p) {
		want := "/bin/kubernetes-1.34"
		if name == component.Etcd || name == component.Kubelets {
			want = ""
		}
		if s.Path != want {
			t.Errorf("%s runs from %q, want %q", name, s.Path, want)
		}
	}
}

// TestComponentsAreAuthenticated checks that components that listen on a port require client
// certificates from the sandbox's CAs.
func TestComponentsAreAuthenticated(t *testing.T) {
	all := specs(plan{Options: Options{Dir: "/data"}, settings: settings{APIServerPort: 6443, EtcdPort: 2379}})
	for name, arguments := range map[string][]string{
		component.Etcd:              {"--client-cert-auth", "--trusted-ca-file=/data/pki/etcd-ca.crt"},
		component.APIServer:         {"--client-ca-file=/data/pki/ca.crt", "--authorization-mode=Node,RBAC", "--bind-address=127.0.0.1", "--etcd-cafile=/data/pki/etcd-ca.crt"},
		component.ControllerManager: {"--secure-port=0", "--kubeconfig=/data/kubeconfigs/system:kube-controller-manager"},
		component.Scheduler:         {"--secure-port=0", "--kubeconfig=/data/kubeconfigs/system:kube-scheduler"},
		component.Kubelets:          {"--kubeconfig=/data/kubeconfigs/sandbox:" + component.Kubelets},
	} {
		if missing := missingFrom(all[name].Args, arguments); len(missing) > 0 {
			t.Errorf("%s runs without %q", name, missing)
		}
	}
	if all[component.Etcd].Port != 2379 || all[component.APIServer].Port != 6443 || all[component.Scheduler].Port != 0 {
		t.Errorf("ports: etcd %d, API server %d, scheduler %d", all[component.Etcd].Port, all[component.APIServer].Port, all[component.Scheduler].Port)
	}
}

// TestCheckRelease checks that an unknown Kubernetes release, or a release with options that it
// does not support, is rejected before anything is started.
func TestCheckRelease(t *testing.T) {
	own := Release(strings.Join(strings.Split(strings.TrimPrefix(KubernetesVersion(), "v"), ".")[:min(2, strings.Count(KubernetesVersion(), ".")+1)], "."))
	for _, tc := range []struct {
		o    Options
		want string
	}{
		{Options{}, ""},
		{Options{EmulatedVersion: "1.34", RealNodes: 1}, ""},
		{Options{Kubernetes: "1.34.4"}, "want a version like 1.34"},
		{Options{Kubernetes: "../sandbox"}, "want a version like 1.34"},
		{Options{Kubernetes: "1.2"}, "build it with 'make build-kubernetes KUBERNETES=1.2'"},
		{Options{Kubernetes: own, EmulatedVersion: "1.34"}, ""},
	} {
		if tc.o.Kubernetes == own && KubernetesVersion() == "unknown" {
			continue
		}
		err := tc.o.checkRelease()
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%+v: %v, want %q", tc.o, err, tc.want)
		}
	}
}
