// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 is the API of the example, laid out as kubebuilder does it.
// +kubebuilder:object:generate=true
// +groupName=webapp.example.com
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is that of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "webapp.example.com", Version: "v1"}

// AddToScheme adds the kinds to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Guestbook{}, &GuestbookList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// GuestbookSpec is what is wanted.
type GuestbookSpec struct {
	// Frontends is how many pods serve it.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=1
	Frontends int32 `json:"frontends,omitempty"`
}

// GuestbookStatus says how many pods are ready.
type GuestbookStatus struct {
	// Ready is how many pods are.
	Ready int32 `json:"ready"`
}

// Guestbook is served by a Deployment of its name.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Guestbook struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   GuestbookSpec   `json:"spec,omitempty"`
	Status GuestbookStatus `json:"status,omitempty"`
}

// GuestbookList is a list of them.
// +kubebuilder:object:root=true
type GuestbookList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Guestbook `json:"items"`
}
