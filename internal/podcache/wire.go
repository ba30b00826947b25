// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Connection is how the API server is reached. It is that of the options of controller-runtime's
// cache.
type Connection struct {
	Config *rest.Config
	Client *http.Client
	Scheme *runtime.Scheme
}

// wire lists and watches the objects of a kind of the API version v1, which it makes from the
// protobuf in which an API server sends them.
type wire struct {
	client     rest.Interface
	parameters runtime.ParameterCodec
	// resource and kind name the kind, such as pods and Pod.
	resource, kind string
	// newDecoder returns a decoder for one stream of objects.
	newDecoder func() decoder
	// listing is called with the number of objects when a list of several pages begins.
	listing func(objects int64)
	// gaveUp says that the API server sends something else.
	gaveUp    atomic.Bool
	fallbacks prometheus.Counter
}

// decoder makes objects from their bytes, which it may overwrite. Its methods return
// errNotUnderstood for what is no such object.
type decoder interface {
	object(raw []byte) (runtime.Object, error)
	// bookmark returns an object with the version and the annotations of a bookmark.
	bookmark(raw []byte) (runtime.Object, error)
}

// newWire returns a wire of a kind. The caller sets the fields that are not of the connection.
func newWire(to Connection, resource, kind string, fallbacks *prometheus.CounterVec) (*wire, error) {
	cfg := rest.CopyConfig(to.Config)
	// Nothing else: an API server that has no protobuf is to say so.
	cfg.AcceptContentTypes = runtime.ContentTypeProtobuf
	gvk := schema.GroupVersionKind{Version: "v1", Kind: kind}
	client, err := apiutil.RESTClientForGVK(gvk, false, false, cfg, serializer.NewCodecFactory(to.Scheme), to.Client)
	if err != nil {
		return nil, fmt.Errorf("set up a client of %s: %w", resource, err)
	}
	return &wire{
		client: client, parameters: runtime.NewParameterCodec(to.Scheme), resource: resource, kind: kind,
		listing: func(int64) {}, fallbacks: fallbacks.WithLabelValues(kind),
	}, nil
}

const fallbacksHelp = "1 if the API server sent objects of a kind otherwise than in the protobuf that the cache reads by itself, so that client-go has decoded them since, at several times the CPU; by kind."

func newFallbacks() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tidekeeper_cache_fallbacks_total",
		Help: fallbacksHelp,
	}, []string{"kind"})
}

// RegisterMetrics registers the metrics of this package without a cache behind them, to list
// them.
func RegisterMetrics(registry prometheus.Registerer) error { return registry.Register(newFallbacks()) }

// understands reports whether the API server may be asked. If it may not, or the error says that
// from now on it may not, client-go has to ask.
func (w *wire) understands(ctx context.Context, err error) bool {
	if errors.Is(err, errNotUnderstood) || apierrors.IsNotAcceptable(err) {
		w.giveUp(ctx, err)
	}
	return !w.gaveUp.Load()
}

// giveUp has all answers decoded by client-go from now on.
func (w *wire) giveUp(ctx context.Context, err error) {
	if w.gaveUp.CompareAndSwap(false, true) {
		w.fallbacks.Inc()
		klog.FromContext(ctx).Info("The API server does not send the expected protobuf; client-go decodes it from now on, which takes several times the CPU", "resource", w.resource, "reason", err.Error())
	}
}

func (w *wire) request(options *metav1.ListOptions) *rest.Request {
	return w.client.Get().Resource(w.resource).VersionedParams(options, w.parameters)
}

// answer is the answer to a request for a page.
type answer struct {
	body io.ReadCloser
	err  error
}

// ask asks for a page.
func (w *wire) ask(ctx context.Context, options metav1.ListOptions) chan answer {
	answers := make(chan answer, 1)
	go func() {
		body, err := w.request(&options).Stream(ctx)
		answers <- answer{body, err}
	}()
	return answers
}

// inPages lists all objects in pages of options.Limit. It asks for a page as soon as the one
// before it says how the list continues, which comes first. It returns the error of an API server
// as a [apierrors.StatusError], and errNotUnderstood.
func (w *wire) inPages(ctx context.Context, options metav1.ListOptions) (*internalversion.List, error) {
	ctx, cancel := context.WithCancel(ctx)
	objects := w.newDecoder()
	list := &internalversion.List{}
	next := w.ask(ctx, options)
	defer func() {
		cancel()
		if next != nil {
			if a := <-next; a.err == nil {
				_ = a.body.Close()
			}
		}
	}()
	begin := func(about *metav1.ListMeta) {
		if options.Continue == "" && about.RemainingItemCount != nil {
			w.listing(options.Limit + *about.RemainingItemCount)
		}
		// All pages have the same version.
		list.ResourceVersion, options.Continue = about.ResourceVersion, about.Continue
		if about.Continue != "" && next == nil {
			next = w.ask(ctx, options)
		}
	}
	keep := func(raw []byte) error {
		object, err := objects.object(raw)
		if err == nil {
			list.Items = append(list.Items, object)
		}
		return err
	}
	for next != nil {
		a := <-next
		next = nil
		if a.err != nil {
			return nil, a.err
		}
		err := readPage(a.body, w.kind+"List", begin, keep)
		_ = a.body.Close()
		if err != nil {
			return nil, fmt.Errorf("read a page of %s: %w", w.resource, err)
		}
	}
	return list, nil
}
