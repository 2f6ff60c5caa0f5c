package shelf;

import io.airlift.slice.Slice;
import io.airlift.slice.Slices;
import io.trino.spi.Page;
import io.trino.spi.type.*;
import java.io.*;
import java.util.List;

/** The format of files: row by row, each value with a byte before it that is 0 for NULL. */
final class RowFile {
    private RowFile() {}

    static boolean canStore(Type type) {
        Class<?> java = type.getJavaType();
        return java == boolean.class
                || java == long.class
                || java == double.class
                || java == Slice.class
                || java == Int128.class;
    }

    static void writeRow(DataOutputStream out, Page page, int position, List<ShelfColumnHandle> columns)
            throws IOException {
        for (ShelfColumnHandle column : columns) {
            Object value = TypeUtils.readNativeValue(column.type(), page.getBlock(column.index()), position);
            out.writeByte(value == null ? 0 : 1);
            switch (value) {
                case null -> {}
                case Boolean bit -> out.writeBoolean(bit);
                case Long number -> out.writeLong(number);
                case Double number -> out.writeDouble(number);
                case Int128 number -> {
                    out.writeLong(number.getHigh());
                    out.writeLong(number.getLow());
                }
                case Slice text -> {
                    out.writeInt(text.length());
                    out.write(text.getBytes());
                }
                default -> throw new IllegalArgumentException("No column has the value " + value);
            }
        }
    }

    static Object readValue(DataInputStream in, Type type) throws IOException {
        if (in.readByte() == 0) {
            return null;
        }
        Class<?> java = type.getJavaType();
        if (java == boolean.class) {
            return in.readBoolean();
        }
        if (java == long.class) {
            return in.readLong();
        }
        if (java == double.class) {
            return in.readDouble();
        }
        if (java == Int128.class) {
            return Int128.valueOf(in.readLong(), in.readLong());
        }
        return Slices.wrappedBuffer(in.readNBytes(in.readInt()));
    }
}
