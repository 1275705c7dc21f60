"""For tests of your own: contract suites, fakes and a fixed clock."""
