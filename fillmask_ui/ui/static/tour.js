// A tour of five steps for a first visit.
