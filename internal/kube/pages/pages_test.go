// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pager is a fake API server with three pages of one pod each. Tests can make its requests fail.
type pager struct {
	client.Reader
	asked []string
	errs  map[string]error
}

func (p *pager) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(options)
	p.asked = append(p.asked, fmt.Sprint(o.Continue, " ", o.Limit))
	if err := p.errs[o.Continue]; err != nil {
		return err
	}
	pages := map[string][2]string{"": {"a", "2"}, "2": {"b", "3"}, "2-fresh": {"b", "3"}, "3": {"c", ""}}
	page := pages[o.Continue]
	list.(*corev1.PodList).Items = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: page[0]}}}
	list.SetContinue(page[1])
	return nil
}

func TestEach(t *testing.T) {
	tooOld := apierrors.NewResourceExpired("the provided continue parameter is too old")
	offering := apierrors.NewResourceExpired("the provided continue parameter is too old")
	offering.ErrStatus.Continue = "2-fresh"
	for _, tt := range []struct {
		name        string
		errs        map[string]error
		want, asked []string
		err         error
	}{
		{name: "three pages", want: []string{"a", "b", "c"}, asked: []string{" 500", "2 500", "3 500"}},
		{name: "the first page is forgotten", errs: map[string]error{"2": offering}, want: []string{"a", "b", "c"},
			asked: []string{" 500", "2 500", "2-fresh 500", "3 500"}},
		{name: "and nothing is offered", errs: map[string]error{"2": tooOld}, want: []string{"a"}, asked: []string{" 500", "2 500"}, err: tooOld},
		{name: "an error", errs: map[string]error{"": context.Canceled}, asked: []string{" 500"}, err: context.Canceled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &pager{errs: tt.errs}
			var got []string
			err := Each(t.Context(), p, func() *corev1.PodList { return &corev1.PodList{} }, func(page *corev1.PodList) {
				for _, pod := range page.Items {
					got = append(got, pod.Name)
				}
			})
			if !errors.Is(err, tt.err) || !slices.Equal(got, tt.want) || !slices.Equal(p.asked, tt.asked) {
				t.Errorf("read %q, asked for %q, %v; want %q, %q, %v", got, p.asked, err, tt.want, tt.asked, tt.err)
			}
		})
	}
}
