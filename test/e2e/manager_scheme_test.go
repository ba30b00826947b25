// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"reflect"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/manager"
)

// unstarted is the manager that [theManager] returns. It is created once and never started.
var unstarted ctrl.Manager

// theManager returns a manager in this process that is configured like the real program.
func theManager(t *testing.T) ctrl.Manager {
	t.Helper()
	if unstarted == nil {
		options := manager.NewOptions()
		options.MetricsBindAddress, options.HealthProbeBindAddress = "0", "0"
		var err error
		if unstarted, err = manager.New(cluster.ManagerConfig(t, "tidekeeper-test"), options, clock.RealClock{}); err != nil {
			t.Fatal(err)
		}
	}
	return unstarted
}

// TestManager_SchemeAndRESTMapper checks that the manager's scheme maps the controllers' kinds to
// Go types and back, that its RESTMapper maps these kinds to the API server's resources, and that
// discovery finds Tidekeeper's kinds by the names that users type.
func TestManager_SchemeAndRESTMapper(t *testing.T) {
	scheme, mapper := theManager(t).GetScheme(), theManager(t).GetRESTMapper()
	ours := tidekeeperv1.SchemeGroupVersion
	if want := (schema.GroupVersion{Group: "tidekeeper.dev", Version: "v1"}); ours != want {
		t.Errorf("our group is %v, want %v", ours, want)
	}
	for _, tt := range []struct {
		object   client.Object
		group    schema.GroupVersion
		kind     string
		resource string
		scope    meta.RESTScope
	}{
		{&tidekeeperv1.NodePool{}, ours, "NodePool", "nodepools", meta.RESTScopeRoot},
		{&tidekeeperv1.NodeMaintenance{}, ours, "NodeMaintenance", "nodemaintenances", meta.RESTScopeRoot},
		{&tidekeeperv1.ScheduledRestart{}, ours, "ScheduledRestart", "scheduledrestarts", meta.RESTScopeNamespace},
		{&nodev1.RuntimeClass{}, nodev1.SchemeGroupVersion, "RuntimeClass", "runtimeclasses", meta.RESTScopeRoot},
		{&corev1.Node{}, corev1.SchemeGroupVersion, "Node", "nodes", meta.RESTScopeRoot},
		{&corev1.Pod{}, corev1.SchemeGroupVersion, "Pod", "pods", meta.RESTScopeNamespace},
		{&appsv1.Deployment{}, appsv1.SchemeGroupVersion, "Deployment", "deployments", meta.RESTScopeNamespace},
		{&appsv1.ReplicaSet{}, appsv1.SchemeGroupVersion, "ReplicaSet", "replicasets", meta.RESTScopeNamespace},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			gvk := tt.group.WithKind(tt.kind)
			if kinds, _, err := scheme.ObjectKinds(tt.object); err != nil || !slices.Equal(kinds, []schema.GroupVersionKind{gvk}) {
				t.Errorf("the scheme has %T as %v (%v), want %v", tt.object, kinds, err, gvk)
			}
			if made, err := scheme.New(gvk); err != nil || reflect.TypeOf(made) != reflect.TypeOf(tt.object) {
				t.Errorf("the scheme makes a %T of %v (%v), want a %T", made, gvk, err, tt.object)
			}
			mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
			if err != nil {
				t.Fatal(err)
			}
			if want := tt.group.WithResource(tt.resource); mapping.Resource != want || mapping.Scope.Name() != tt.scope.Name() {
				t.Errorf("the RESTMapper has it as %v, scope %s; want %v, scope %s", mapping.Resource, mapping.Scope.Name(), want, tt.scope.Name())
			}
			if kind, err := mapper.KindFor(mapping.Resource); err != nil || kind != gvk {
				t.Errorf("the RESTMapper has %v as %v (%v), want %v", mapping.Resource, kind, err, gvk)
			}
		})
	}
	if _, err := mapper.RESTMapping(schema.GroupKind{Group: ours.Group, Kind: "Tide"}); !meta.IsNoMatchError(err) {
		t.Errorf("a kind that is not served: %v, want that there is no match", err)
	}

	d, err := discovery.NewDiscoveryClientForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	resources, err := d.ServerResourcesForGroupVersion(ours.String())
	if err != nil {
		t.Fatal(err)
	}
	names := map[string][]string{}
	for _, r := range resources.APIResources {
		names[r.Name] = slices.Concat([]string{r.Kind, r.SingularName}, r.ShortNames)
	}
	if err := diff(map[string][]string{
		"freezes": {"Freeze", "freeze"}, "freezes/status": {"Freeze", ""}, "nodemaintenances": {"NodeMaintenance", "nodemaintenance", "nmaint"},
		"nodemaintenances/status": {"NodeMaintenance", ""}, "nodepools": {"NodePool", "nodepool", "npool"}, "nodepools/status": {"NodePool", ""},
		"scheduledrestarts": {"ScheduledRestart", "scheduledrestart", "srestart", "eru", "erus"}, "scheduledrestarts/status": {"ScheduledRestart", ""},
	}, names); err != nil {
		t.Errorf("discovery: %v", err)
	}
}
