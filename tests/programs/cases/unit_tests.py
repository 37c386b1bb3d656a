import io, re, unittest


class Arithmetic(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(1 + 1, 2)

    def test_wrong(self):
        self.assertEqual(1 + 1, 3)

    @unittest.skip("not now")
    def test_skipped(self):
        pass

    def test_subtests(self):
        for number in range(3):
            with self.subTest(number=number):
                self.assertLess(number, 3)


stream = io.StringIO()
result = unittest.TextTestRunner(stream, verbosity=2).run(unittest.defaultTestLoader.loadTestsFromTestCase(Arithmetic))
print(result.testsRun, len(result.failures), len(result.skipped), result.wasSuccessful())
print(re.sub(r"[\d.]+s", "TIME", stream.getvalue()).split("\n")[0])
raise SystemExit(not result.wasSuccessful())
