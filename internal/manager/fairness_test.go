// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"tidekeeper.dev/tidekeeper/internal/cache/optional"
	"tidekeeper.dev/tidekeeper/internal/cache/podcache"
	"tidekeeper.dev/tidekeeper/internal/controller"
	"tidekeeper.dev/tidekeeper/internal/fairness"
	"tidekeeper.dev/tidekeeper/internal/kube/event"
)

// addedManager is a manager that records the runnables that controllers add.
type addedManager struct {
	ctrl.Manager
	added []manager.Runnable
}

// Add implements [ctrl.Manager].
func (m *addedManager) Add(r manager.Runnable) error {
	m.added = append(m.added, r)
	return nil
}

// unfair describes the part of a controller that is not from the package fairness, which shares the
// work fairly among namespaces. It returns "" if there is none. It reads the fields Do and NewQueue
// of controller-runtime's controller by reflection, because the controller's type parameter varies.
func unfair(c any) string {
	fields := reflect.ValueOf(c).Elem()
	if do := fmt.Sprintf("%T", fields.FieldByName("Do").Interface()); !strings.HasPrefix(do, "*fairness.Reconciler[") {
		return "reconciles by " + do
	}
	limiter := reflect.Zero(fields.FieldByName("NewQueue").Type().In(1))
	queue := fields.FieldByName("NewQueue").Call([]reflect.Value{reflect.ValueOf(""), limiter})[0].Interface()
	queue.(interface{ ShutDown() }).ShutDown()
	if name := fmt.Sprintf("%T", queue); !strings.HasPrefix(name, "*fairness.Queue[") {
		return "has the queue " + name
	}
	return ""
}

// ofAdministrators lists the controllers that read namespaced objects, but act for objects that only the
// cluster's administrators write. They need not be fair to namespaces.
var ofAdministrators = []string{"nodepool", "freeze", "node-maintenance"}

// readsNamespaced reports whether a controller reads objects of namespaces.
func readsNamespaced(t *testing.T, mapper meta.RESTMapper, scheme *runtime.Scheme, c *controller.Definition) bool {
	t.Helper()
	read := slices.Concat(c.Watches, c.Optional)
	for _, w := range c.OptionalWatches {
		read = append(read, w.Object)
	}
	for _, b := range c.Borrows {
		read = append(read, b.Object)
	}
	return slices.ContainsFunc(read, func(o client.Object) bool {
		namespaced, err := apiutil.IsObjectNamespaced(o, scheme, mapper)
		if err != nil {
			t.Fatal(err)
		}
		return namespaced
	})
}

// TestNamespacesShareEveryController checks that every controller is built by the package fairness,
// unless it reads no namespaced objects or is listed in ofAdministrators.
func TestNamespacesShareEveryController(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	all := newSelection(controllers(), nil)
	workloads := &podcache.Workloads{}
	inner, err := ctrl.NewManager(&rest.Config{Host: "https://127.0.0.1:1"}, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Cache: cacheOptions(all.watches),
		NewCache:       newCache(all.watches, optional.NewCache(optionalKinds(all.watches), true), podcache.Content{}, workloads, prometheus.NewRegistry()),
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapperOf(t, scheme), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := addInformers(inner, all.watches); err != nil {
		t.Fatal(err)
	}
	var fair []string
	unfairAllowed := sets.New[string]()
	for _, c := range controllers() {
		recorder := &addedManager{Manager: inner}
		shared := sharingManager{recorder, &event.Recorder{}, workloads, fairness.New(fairness.Limits{}, clock.RealClock{}), nil}
		if err := c.SetupWithManager(shared, clock.RealClock{}); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		for _, added := range recorder.added {
			if !strings.HasPrefix(fmt.Sprintf("%T", added), "*controller.Controller[") {
				continue
			}
			switch why := unfair(added); {
			case why == "":
				fair = append(fair, c.Name)
			case !c.Namespaced && !readsNamespaced(t, inner.GetRESTMapper(), scheme, &c):
			case c.Namespaced || !slices.Contains(ofAdministrators, c.Name):
				t.Errorf("%s reads namespaced objects, and %s: build it by fairness.Complete", c.Name, why)
			default:
				unfairAllowed.Insert(c.Name)
			}
		}
	}
	for _, name := range []string{"scheduled-restart", "restart-opt-in", "pod-count"} {
		if !slices.Contains(fair, name) {
			t.Errorf("%s is not fair", name)
		}
	}
	if !unfairAllowed.HasAll(ofAdministrators...) {
		t.Errorf("of %v, only %v need the exception", ofAdministrators, sets.List(unfairAllowed))
	}
}
