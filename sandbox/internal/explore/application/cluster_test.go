// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"fmt"
	"net"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
)

// store is a cluster with the pods store-0, which is ready, store-1, which runs and is not ready, and
// store-2, which has ended, behind the Service "client" with a cluster IP, the headless Service "peers"
// the headless Service "early", which publishes addresses that are not ready, and three Services
// that stand for another name.
func store() *cluster {
	c := &cluster{}
	for i, phase := range []corev1.PodPhase{corev1.PodRunning, corev1.PodRunning, corev1.PodSucceeded} {
		c.pods = append(c.pods, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "db", Name: fmt.Sprintf("store-%d", i), Labels: map[string]string{"app": "store"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "talk", ContainerPort: 2181}}}}},
			Status:     corev1.PodStatus{Phase: phase, PodIP: fmt.Sprintf("10.128.0.%d", i+1)},
		})
	}
	c.pods = append(c.pods, corev1.Pod{Spec: corev1.PodSpec{HostNetwork: true}, Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.128.0.9"}})
	ports := []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromString("talk")}, {Port: 81, TargetPort: intstr.FromInt32(2181)}, {Port: 2181}, {Port: 82, TargetPort: intstr.FromString("none")}}
	for name, ip := range map[string]string{"client": "10.96.0.7", "peers": corev1.ClusterIPNone, "early": corev1.ClusterIPNone} {
		c.services = append(c.services, corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "db", Name: name},
			Spec:       corev1.ServiceSpec{ClusterIP: ip, Ports: ports, PublishNotReadyAddresses: name == "early"},
		})
		slice := discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "db", Labels: map[string]string{discoveryv1.LabelServiceName: name}}}
		for i := 1; i >= 0; i-- {
			pod, ready := c.pods[i], i == 0
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
				Addresses: []string{pod.Status.PodIP}, Hostname: &pod.Name, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
				TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name},
			})
		}
		c.slices = append(c.slices, slice)
	}
	for name, of := range map[string]string{"alias": "Client.db.svc.cluster.local.", "outside": "example.com", "loop": "loop.db.svc.cluster.local"} {
		c.services = append(c.services, corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "db", Name: name}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: of},
		})
	}
	return c
}

func TestAddresses(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		exists     bool
	}{
		{"client.db.svc.cluster.local", "[10.96.0.7]", true},
		{"peers.db.svc.cluster.local", "[10.128.0.1]", true},
		{"early.db.svc.cluster.local", "[10.128.0.1 10.128.0.2]", true},
		{"store-0.peers.db.svc.cluster.local", "[10.128.0.1]", true},
		{"store-1.peers.db.svc.cluster.local", "[]", false},
		{"store-1.early.db.svc.cluster.local", "[10.128.0.2]", true},
		{"store-0.client.db.svc.cluster.local", "[]", false},
		{"alias.db.svc.cluster.local", "[10.96.0.7]", true},
		{"store-0.alias.db.svc.cluster.local", "[]", false},
		{"outside.db.svc.cluster.local", "[]", false},
		{"loop.db.svc.cluster.local", "[]", false},
		{"client.default.svc.cluster.local", "[]", false},
		{"client.db.cluster.local", "[]", false},
		{"client.svc.cluster.local", "[]", false},
		{"a.store-0.peers.db.svc.cluster.local", "[]", false},
		{"cluster.local", "[]", false},
	} {
		got, exists := store().addresses(tc.name)
		if fmt.Sprint(got) != tc.want || exists != tc.exists {
			t.Errorf("%s: %v, %t, want %s, %t", tc.name, got, exists, tc.want, tc.exists)
		}
	}
}

func TestBehind(t *testing.T) {
	for _, tc := range []struct {
		address string
		port    int
		want    string
	}{
		{"10.96.0.7", 80, "store-0:2181"},
		{"10.96.0.7", 81, "store-0:2181"},
		{"10.96.0.7", 2181, "store-0:2181"},
		{"10.96.0.7", 82, ""},
		{"10.96.0.7", 83, ""},
		{"10.128.0.1", 2181, "store-0:2181"},
		{"10.128.0.2", 2181, "store-1:2181"},
		{"10.128.0.3", 2181, ""},
		{"10.128.0.9", 2181, ""},
		{"10.128.0.4", 2181, ""},
	} {
		got := ""
		if pod, port := store().behind(tc.address, tc.port); pod != nil {
			got = fmt.Sprintf("%s:%d", pod.Name, port)
		}
		if got != tc.want {
			t.Errorf("%s:%d: %q, want %q", tc.address, tc.port, got, tc.want)
		}
	}
}

// TestOf checks that a connection leads to the first application whose selector and port match.
func TestOf(t *testing.T) {
	described := func(name, pods string, port int) application {
		selector, err := labels.Parse(pods)
		if err != nil {
			t.Fatal(err)
		}
		return application{workload.Application{Program: name, Selector: selector, Port: port}, ""}
	}
	all := []application{described("web", "app=web", 2181), described("admin", "app=store", 8080), described("store", "app in (store)", 2181), described("other", "app=store", 2181)}
	for _, tc := range []struct {
		address string
		port    int
		want    string
	}{
		{"10.96.0.7", 80, "store"},
		{"10.128.0.2", 2181, "store"},
		{"10.128.0.1", 8080, "admin"},
		{"10.128.0.1", 80, ""},
		{"10.128.0.3", 2181, ""},
	} {
		got := ""
		if a, _ := of(all, store(), &net.TCPAddr{IP: net.ParseIP(tc.address), Port: tc.port}); a != nil {
			got = a.Program
		}
		if got != tc.want {
			t.Errorf("%s:%d: %q, want %q", tc.address, tc.port, got, tc.want)
		}
	}
}
