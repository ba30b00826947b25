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

// Connection describes the connection to the API server. Its fields have the same names as in
// controller-runtime's cache options.
type Connection struct {
	Config *rest.Config
	Client *http.Client
	Scheme *runtime.Scheme
}

// source lists and watches the objects of a kind in API version v1. It decodes the API server's
// protobuf without client-go.
type source struct {
	client     rest.Interface
	parameters runtime.ParameterCodec
	// resource and kind are the names of the kind, such as pods and Pod.
	resource, kind string
	// newDecoder returns a decoder for a stream of objects.
	newDecoder func() decoder
	// listing is called at the start of a list that has several pages, with the total number of
	// objects.
	listing func(objects int64)
	// verifier compares each object with the object that client-go decodes. If it is nil, nothing
	// is compared.
	verifier *verifier
	// gaveUp is true once the API server has responded in an encoding other than the expected
	// protobuf. From then on, client-go handles all requests.
	gaveUp    atomic.Bool
	fallbacks prometheus.Counter
}

// decoder decodes the objects of a kind from protobuf, and may overwrite the encoded bytes. Its
// methods return wire.ErrNotUnderstood for bytes that are not an object of the decoder's kind.
type decoder interface {
	object(raw []byte) (runtime.Object, error)
	// bookmark returns an object with a bookmark's resourceVersion and annotations.
	bookmark(raw []byte) (runtime.Object, error)
}

// newSource returns a source of the given kind. The caller must set newDecoder, and may set listing
// and verifier.
func newSource(to Connection, resource, kind string, m *metrics) (*source, error) {
	cfg := rest.CopyConfig(to.Config)
	// The client accepts only protobuf. An API server without protobuf then responds with an error
	// instead of another encoding.
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

// understands reports whether the source can read the API server's responses. If err is the error
// for a response in another encoding, the source gives up permanently, and client-go must be used
// instead.
func (s *source) understands(ctx context.Context, err error) bool {
	if errors.Is(err, wire.ErrNotUnderstood) || apierrors.IsNotAcceptable(err) {
		s.giveUp(ctx, err)
	}
	return !s.gaveUp.Load()
}

// giveUp makes client-go decode all further responses, and counts and logs the fallback.
func (s *source) giveUp(ctx context.Context, err error) {
	if s.gaveUp.CompareAndSwap(false, true) {
		s.fallbacks.Inc()
		klog.FromContext(ctx).Info("The API server does not send the expected protobuf; client-go decodes it from now on, which takes several times the CPU", "resource", s.resource, "reason", err.Error())
	}
}

func (s *source) request(options *metav1.ListOptions) *rest.Request {
	return s.client.Get().Resource(s.resource).VersionedParams(options, s.parameters)
}

// answer is the response to a page request, or the request's error.
type answer struct {
	body io.ReadCloser
	err  error
}

// ask sends a page request, and returns a channel that receives the response.
func (s *source) ask(ctx context.Context, options metav1.ListOptions) chan answer {
	answers := make(chan answer, 1)
	go func() {
		body, err := s.request(&options).Stream(ctx)
		answers <- answer{body, err}
	}()
	return answers
}

// mostPages is the number of pages into which a large list is divided. largestPage is the maximum
// number of objects in a page. An API server iterates over all objects for each page, which makes
// many small pages of a large list more expensive than the objects themselves. A large page costs
// the client no additional memory, because the page is read as a stream.
const (
	mostPages   = 50
	largestPage = 5000
)

// pageOf returns the page size for a list with the given number of objects.
func pageOf(objects int64) int64 { return min(max(pageSize, objects/mostPages), largestPage) }

// inPages lists all objects. The first page has options.Limit objects, and later pages have the
// size that [pageOf] returns. The next page is requested as soon as the current page's metadata has
// been read, which comes first and contains the continue token. inPages returns an API server's
// error as an [apierrors.StatusError], and wire.ErrNotUnderstood for a response in another
// encoding.
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
		// The resourceVersion is the same for all pages.
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
