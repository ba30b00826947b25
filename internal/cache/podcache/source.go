// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"bytes"
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

	"tidekeeper.dev/tidekeeper/internal/cache/wire"
)

// Connection is the connection to the API server, with the fields of the options of
// controller-runtime's cache.
type Connection struct {
	Config *rest.Config
	Client *http.Client
	Scheme *runtime.Scheme
}

// source lists and watches the objects of a kind of the API version v1, which it decodes itself
// from the API server's protobuf.
type source struct {
	client     rest.Interface
	parameters runtime.ParameterCodec
	// resource and kind are the names of the kind, such as pods and Pod.
	resource, kind string
	// newDecoder returns a decoder for a stream of objects.
	newDecoder func() decoder
	// listing is called with the number of objects at the start of a list of several pages.
	listing func(objects int64)
	// verifier compares the objects with client-go's; nil for none.
	verifier *verifier
	// gaveUp is true once the API server has sent an answer in another encoding.
	gaveUp    atomic.Bool
	fallbacks prometheus.Counter
}

// decoder decodes objects from their bytes, which it may overwrite. For bytes that are not such
// an object, its methods return wire.ErrNotUnderstood.
type decoder interface {
	object(raw []byte) (runtime.Object, error)
	// bookmark returns an object with the version and the annotations of a bookmark.
	bookmark(raw []byte) (runtime.Object, error)
}

// newSource returns a source of a kind. The caller sets newDecoder, and listing and verifier if needed.
func newSource(to Connection, resource, kind string, m *metrics) (*source, error) {
	cfg := rest.CopyConfig(to.Config)
	// Protobuf alone: an API server without protobuf must answer with an error.
	cfg.AcceptContentTypes = runtime.ContentTypeProtobuf
	gvk := schema.GroupVersionKind{Version: "v1", Kind: kind}
	client, err := apiutil.RESTClientForGVK(gvk, false, false, cfg, serializer.NewCodecFactory(to.Scheme), to.Client)
	if err != nil {
		return nil, fmt.Errorf("set up a client of %s: %w", resource, err)
	}
	return &source{
		client: client, parameters: runtime.NewParameterCodec(to.Scheme), resource: resource, kind: kind,
		listing: func(int64) {}, fallbacks: m.fallbacks.WithLabelValues(kind),
	}, nil
}

// understands reports whether source can talk to the API server. It gives up for good if err
// shows that the API server uses another encoding, so that client-go must be used instead.
func (s *source) understands(ctx context.Context, err error) bool {
	if errors.Is(err, wire.ErrNotUnderstood) || apierrors.IsNotAcceptable(err) {
		s.giveUp(ctx, err)
	}
	return !s.gaveUp.Load()
}

// giveUp makes client-go decode all answers from now on.
func (s *source) giveUp(ctx context.Context, err error) {
	if s.gaveUp.CompareAndSwap(false, true) {
		s.fallbacks.Inc()
		klog.FromContext(ctx).Info("The API server does not send the expected protobuf; client-go decodes it from now on, which takes several times the CPU", "resource", s.resource, "reason", err.Error())
	}
}

func (s *source) request(options *metav1.ListOptions) *rest.Request {
	return s.client.Get().Resource(s.resource).VersionedParams(options, s.parameters)
}

// answer is the response to a request for a page.
type answer struct {
	body io.ReadCloser
	err  error
}

// ask requests a page.
func (s *source) ask(ctx context.Context, options metav1.ListOptions) chan answer {
	answers := make(chan answer, 1)
	go func() {
		body, err := s.request(&options).Stream(ctx)
		answers <- answer{body, err}
	}()
	return answers
}

// mostPages is the number of pages of a large list, and largestPage the maximum number of
// objects of a page. For each page an API server iterates over all objects, so that many small
// pages of a large list cost more than the objects themselves. A large page costs the client no
// memory, since it is read as a stream.
const (
	mostPages   = 50
	largestPage = 5000
)

// pageOf returns the page size for a list of that many objects.
func pageOf(objects int64) int64 { return min(max(pageSize, objects/mostPages), largestPage) }

// inPages lists all objects, first in a page of options.Limit, then in pages of the size of
// [pageOf]. The next page is requested as soon as the list metadata with the continue token,
// which comes first, has been read. It returns an error of the API server as a
// [apierrors.StatusError], and wire.ErrNotUnderstood.
func (s *source) inPages(ctx context.Context, options metav1.ListOptions) (*internalversion.List, error) {
	ctx, cancel := context.WithCancel(ctx)
	objects := s.newDecoder()
	list := &internalversion.List{}
	next := s.ask(ctx, options)
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
			objects := options.Limit + *about.RemainingItemCount
			s.listing(objects)
			options.Limit = max(options.Limit, pageOf(objects))
		}
		// All pages have the same version.
		list.ResourceVersion, options.Continue = about.ResourceVersion, about.Continue
		if about.Continue != "" && next == nil {
			next = s.ask(ctx, options)
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
		var whole bytes.Buffer
		first := len(list.Items)
		err := wire.ReadPage(s.verifier.tee(a.body, &whole), s.kind+"List", begin, keep)
		_ = a.body.Close()
		if err == nil {
			err = s.verifier.page(ctx, whole.Bytes(), list.ResourceVersion, options.Continue, list.Items[first:])
		}
		if err != nil {
			return nil, fmt.Errorf("read a page of %s: %w", s.resource, err)
		}
	}
	return list, nil
}
